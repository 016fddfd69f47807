/** An object of the API. */
export type Json = Readonly<Record<string, unknown>>;

/** RFC 3339 with milliseconds. */
export function timeOf(wall: number): string {
  return new Date(wall).toISOString();
}
