/** A moment as RFC 3339 in whole seconds, as the API stores it. */
export function timeText(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}

/** Milliseconds since 1970 of a time of the API; undefined if there is none. */
export function timeOf(text: string | undefined): number | undefined {
  const at = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}
