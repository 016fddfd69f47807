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

/** The seed that an environment variable names, another each time for `random`; without the variable the usual one. */
export function chooseSeed(variable: string, usual: number): number {
  const named = process.env[variable] ?? "";
  if (named === "random") return Math.floor(Math.random() * 2 ** 31);
  return named === "" ? usual : Number(named);
}
