/** A small generator of random numbers below 1 that a seed repeats. */
export function randomFrom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The seed that an environment variable names; else a random one in CI, and the same one each time elsewhere. */
export function chooseSeed(variable: string, usual: number): number {
  const named = process.env[variable];
  if (named !== undefined && named !== "") return Number(named);
  return process.env["CI"] === "true" ? Math.floor(Math.random() * 2 ** 31) : usual;
}
