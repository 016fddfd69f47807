/**
 * Returns the value of a key that a user chose, from a record's own keys only: a plain lookup of `constructor` or
 * `toString` returns what every object inherits.
 */
export function ownValue<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}
