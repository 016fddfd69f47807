import { TooManyNodesError } from "../model/topology.ts";

/** A table with a number for each set of so many nodes has 1 MiB. */
const MOST_DENSE = 17;
/** Of so many pairs each is looked at: some 50 ms. */
const MOST_PAIRS = 2 ** 20;

/**
 * Returns what any set of the one list and any of the other have in common, if it is not empty: sets of `size` nodes at
 * most, as bits. Throws a TooManyNodesError if there are too many pairs. Pure.
 */
export function intersections(a: readonly number[], b: readonly number[], size: number): ReadonlySet<number> {
  const pairs = a.length * b.length;
  if (size <= MOST_DENSE && pairs > size * 2 ** size) return denseIntersections(a, b, size);
  if (pairs > MOST_PAIRS)
    throw new TooManyNodesError(`cannot merge hints for sets of ${size} NUMA nodes, there are too many`);
  const found = new Set<number>();
  for (const x of a) for (const y of b) if ((x & y) !== 0) found.add(x & y);
  return found;
}

/**
 * The same in a time that depends on the number of sets, not on that of pairs: how many pairs have at least some nodes in
 * common is the number of sets of the one list with these, times that of the other.
 */
function denseIntersections(a: readonly number[], b: readonly number[], size: number): ReadonlySet<number> {
  const [pairs, ofB] = [a, b].map((masks) => {
    const counts = new Float64Array(2 ** size);
    for (const mask of masks) counts[mask] = 1;
    return addSupersets(counts, 1);
  }) as [Float64Array, Float64Array]; // reason: map keeps the length
  for (const [mask, count] of ofB.entries()) pairs[mask] = (pairs[mask] ?? 0) * count;
  const found = new Set<number>();
  for (const [mask, count] of addSupersets(pairs, -1).entries()) if (count > 0 && mask !== 0) found.add(mask);
  return found;
}

/** Adds to the number of each set those of all sets that contain it, or subtracts them again. */
function addSupersets(counts: Float64Array, sign: 1 | -1): Float64Array {
  for (let bit = 1; bit < counts.length; bit *= 2) {
    for (let mask = 0; mask < counts.length; mask++) {
      if ((mask & bit) === 0) counts[mask] = (counts[mask] ?? 0) + sign * (counts[mask | bit] ?? 0);
    }
  }
  return counts;
}
