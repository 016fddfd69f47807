import { performance } from "node:perf_hooks";

/**
 * Measures how late an immediate timer runs, as far as the process itself has computed meanwhile: on a busy machine it
 * also waits for others, which is no delay of its own. `stop` returns the longest delay in milliseconds.
 */
export function watchLoop(): { stop(): number } {
  let longest = 0;
  let last = performance.now();
  let used = process.cpuUsage();
  const timer = setInterval(() => {
    const now = performance.now();
    const { user, system } = process.cpuUsage(used);
    longest = Math.max(longest, Math.min(now - last - 1, (user + system) / 1000));
    last = now;
    used = process.cpuUsage();
  }, 1);
  return {
    stop: () => {
      clearInterval(timer);
      return longest;
    },
  };
}
