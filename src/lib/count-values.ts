/**
 * Counts a value and everything in it: 1 for a scalar, 2 for an empty object or list, and 1 more than its parts for any
 * other. What occurs in several places counts in each of them, as it does in JSON. Stops once there are more than `most`, so
 * that a value that contains itself has an answer too.
 */
export function countValues(root: unknown, most: number): number {
  let values = 1;
  const rest: object[] = [];
  if (typeof root === "object" && root !== null) rest.push(root);
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const parts: readonly unknown[] = Array.isArray(next) ? next : Object.values(next);
    values += Math.max(parts.length, 1);
    if (values > most) return values;
    for (const part of parts) if (typeof part === "object" && part !== null) rest.push(part);
  }
  return values;
}
