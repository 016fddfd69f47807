/** The refusal of a memory limit that would end processes at once, in the words that clients of Kubernetes look for. */
export function belowUsage(whose: string, limit: number, usage: number): Error {
  const words = `attempting to set ${whose} memory limit (${limit}) below current usage (${usage})`;
  return new Error(`cannot decrease memory limits: ${words}`);
}
