const SECOND = 1000;
const MINUTE = 60;
const HOUR = 60;
const DAY = 24;
const YEAR = 365;

/** A duration as `kubectl` shows ages: two units at most, and the smaller one only while it matters. */
export function humanDuration(ms: number): string {
  // Clocks of two machines may differ a little.
  const seconds = Math.trunc(ms / SECOND);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  const minutes = Math.floor(seconds / MINUTE);
  if (minutes < 10) return units([minutes, "m"], [seconds % MINUTE, "s"]);
  if (minutes < 3 * HOUR) return `${minutes}m`;
  const hours = Math.floor(minutes / HOUR);
  if (hours < 8) return units([hours, "h"], [minutes % HOUR, "m"]);
  if (hours < 2 * DAY) return `${hours}h`;
  const days = Math.floor(hours / DAY);
  if (hours < 8 * DAY) return units([days, "d"], [hours % DAY, "h"]);
  if (days < 2 * YEAR) return `${days}d`;
  const years = Math.floor(days / YEAR);
  if (days < 8 * YEAR) return units([years, "y"], [days % YEAR, "d"]);
  return `${years}y`;
}

function units([large, first]: readonly [number, string], [small, second]: readonly [number, string]): string {
  return small === 0 ? `${large}${first}` : `${large}${first}${small}${second}`;
}

/** The time since a moment of the API, as in a table; `<unknown>` without one. */
export function since(time: string | null | undefined, now: number): string {
  const at = time ? Date.parse(time) : Number.NaN;
  return Number.isNaN(at) ? "<unknown>" : humanDuration(now - at);
}
