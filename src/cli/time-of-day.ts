/** `2026-01-02T03:04:05Z`: to the second, in UTC, as the timestamps of Kubernetes are. */
export function timeOfDay(wall: number): string {
  return new Date(wall).toISOString().replace(/\.\d+Z$/, "Z");
}
