import { fnv1a32 } from "../model/fnv.ts";

// Kubernetes protects its state files by a hash of the printed form of its own structures, which is written here.

/** A map with its keys in the order of the printed form, which are strings or whole numbers. */
export function dumpMap(entries: Iterable<readonly [string | number, string]>): string {
  const sorted = [...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `map[${sorted.map(([key, value]) => `${key}:${value}`).join(" ")}]`;
}

/** A structure: each field's name and its printed value, which begins with its type. */
export function dumpStruct(fields: readonly (readonly [string, string])[]): string {
  return `{${fields.map(([name, value]) => `${name}:${value}`).join(" ")}}`;
}

/** The checksum of a printed structure. */
export function checksumOf(dump: string): number {
  return fnv1a32(new TextEncoder().encode(dump));
}
