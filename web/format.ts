const UNITS = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

/** Bytes as quantities are written: `512`, `4.0Ki`, `12Mi`. */
export function bytes(value: number): string {
  let [left, unit] = [value, 0];
  while (left >= 1023.5 && unit < UNITS.length - 1) {
    left /= 1024;
    unit++;
  }
  return `${unit > 0 && left < 9.95 ? left.toFixed(1) : Math.round(left)}${UNITS[unit]}`;
}

/** A duration in milliseconds, two units at most. */
export function ago(ms: number): string {
  if (!Number.isFinite(ms)) return "?";
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  if (seconds < 60) return `${seconds}s`;
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86_400)];
  if (hours < 1) return two(minutes, "m", seconds % 60, "s");
  return days < 1 ? two(hours, "h", minutes % 60, "m") : two(days, "d", hours % 24, "h");
}

// biome-ignore format: one line
const two = (...[large, a, small, b]: [number, string, number, string]): string => `${large}${a}${small === 0 ? "" : `${small}${b}`}`;

export function millicores(nanoCores: number | undefined): string {
  return nanoCores === undefined ? "–" : `${Math.round(nanoCores / 1e6)}m`;
}

export function percent(part: number, whole: number): string {
  return whole === 0 ? "" : `${Math.round((part / whole) * 100)} %`;
}

export function perSecond(value: number | undefined): string {
  return value === undefined ? "–" : `${bytes(value)}/s`;
}

export function timeOfDay(ms: number): string {
  return new Date(ms).toLocaleTimeString(undefined, { hour12: false });
}

/** `1 restart`, `2 restarts`. */
export function count(amount: number, noun: string, plural = `${noun}s`): string {
  return `${amount} ${amount === 1 ? noun : plural}`;
}
