import { CodedError } from "../lib/errors.ts";

/** A text that is no duration. */
export class DurationError extends CodedError<"InvalidDuration"> {
  constructor(text: string) {
    const shown = text.length > 40 ? `${text.slice(0, 40)}…` : text;
    super("InvalidDuration", `${JSON.stringify(shown)} is not a duration such as 20s, 1m30s or 1.5h`);
  }
}

const UNIT_NANOS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const PART = /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/y;
/** Durations are 64-bit nanoseconds: about 292 years. */
const LARGEST = 2n ** 63n - 1n;
const LONGEST_TEXT = 128;

/** Nanoseconds of a Go-style duration (`1m30s`, `1.5h`, `-2ms`, `0`). Throws `DurationError`. */
export function parseDurationNanos(text: string): bigint {
  if (text.length > LONGEST_TEXT) throw new DurationError(text);
  const isNegative = text.startsWith("-");
  const body = isNegative || text.startsWith("+") ? text.slice(1) : text;
  if (body === "0") return 0n;
  let total = 0n;
  let position = 0;
  while (position < body.length || position === 0) {
    PART.lastIndex = position;
    const match = PART.exec(body);
    if (match === null) throw new DurationError(text);
    const [part, whole = "", fraction = "", unit = ""] = match;
    if (whole === "" && fraction === "") throw new DurationError(text);
    const nanos = UNIT_NANOS[unit] ?? 0n;
    total += BigInt(whole || "0") * nanos + (BigInt(fraction || "0") * nanos) / 10n ** BigInt(fraction.length);
    if (total > LARGEST) throw new DurationError(text);
    position += part.length;
  }
  return isNegative ? -total : total;
}

/** The same in milliseconds, as timers take it; finer parts stay as a fraction. */
export function parseDuration(text: string): number {
  const nanos = parseDurationNanos(text);
  return Number(nanos / 1_000_000n) + Number(nanos % 1_000_000n) / 1_000_000;
}

/** Milliseconds in the Go form: `1m0s`, `4h0m0s`, `100ms`, `1.5s`, `0s`. */
export function formatDuration(ms: number): string {
  return formatDurationNanos(BigInt(Math.round(ms * 1_000_000)));
}

/** Nanoseconds in the Go form. */
export function formatDurationNanos(nanos: bigint): string {
  if (nanos === 0n) return "0s";
  const sign = nanos < 0n ? "-" : "";
  const size = nanos < 0n ? -nanos : nanos;
  if (size < 1_000n) return `${sign}${size}ns`;
  if (size < 1_000_000n) return `${sign}${decimal(size, 3)}µs`;
  if (size < 1_000_000_000n) return `${sign}${decimal(size, 6)}ms`;
  const minuteNanos = 60_000_000_000n;
  const minutes = size / minuteNanos;
  const seconds = `${decimal(size % minuteNanos, 9)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  const hours = minutes / 60n;
  return hours === 0n ? `${sign}${minutes}m${seconds}` : `${sign}${hours}h${minutes % 60n}m${seconds}`;
}

/** `value` with its last `places` digits behind the point, without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const unit = 10n ** BigInt(places);
  const fraction = (value % unit).toString().padStart(places, "0").replace(/0+$/, "");
  return fraction === "" ? `${value / unit}` : `${value / unit}.${fraction}`;
}
