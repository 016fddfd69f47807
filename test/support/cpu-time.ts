/**
 * Starts to count CPU time of this process; each call of the result gives the milliseconds so far. For tests of work that
 * must not grow with the square of its input: others on the machine do not count, as they would by a clock.
 */
export function countCpu(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
}
