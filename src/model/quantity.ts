import { CodedError } from "../lib/errors.ts";

/** The family that a quantity was written in, and is written in again. */
export type QuantityFamily = "decimal" | "binary" | "exponent";

/** An exact amount: a whole number of nanos. The text form in API objects is `Quantity` of generated/types.ts. */
export interface Amount {
  readonly nano: bigint;
  readonly family: QuantityFamily;
}

/** A text that is no quantity. */
export class QuantityError extends CodedError<"InvalidQuantity"> {
  constructor(text: string) {
    const shown = text.length > 40 ? `${text.slice(0, 40)}…` : text;
    super("InvalidQuantity", `${JSON.stringify(shown)} is not a quantity such as 500m, 1.5 or 128Mi`);
  }
}

const NANO = 1_000_000_000n;
const LARGEST_BINARY_NANO = (2n ** 63n - 1n) * NANO;
/** More digits than this is no amount of anything, and arithmetic on them would cost real time. */
const LONGEST_TEXT = 256;
const LARGEST_EXPONENT = 64;

/** The powers of ten that the decimal suffixes stand for. */
export const DECIMAL_EXPONENTS: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  "": 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const DECIMAL_SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const FORM = /^([+-]?)(\d*)(?:\.(\d*))?(?:([eE])([+-]?\d+)|([KMGTPE]i)|([numkMGTPE]))?$/;

/** No amount. */
export const ZERO: Amount = { nano: 0n, family: "decimal" };

/** The whole number `value` as an amount. */
export function amountOf(value: number | bigint, family: QuantityFamily = "decimal"): Amount {
  return { nano: BigInt(value) * NANO, family };
}

/** `milli` thousandths as an amount. */
export function amountOfMilli(milli: number | bigint): Amount {
  return { nano: BigInt(milli) * 1_000_000n, family: "decimal" };
}

/** Reads a quantity; finer than a nano is rounded away from zero, as in Kubernetes. Throws `QuantityError`. */
export function parseQuantity(text: string): Amount {
  const match = text.length <= LONGEST_TEXT ? FORM.exec(text) : null;
  if (match === null) throw new QuantityError(text);
  const [, sign, whole = "", fraction = "", exponentMark, exponentText, binarySuffix, decimalSuffix = ""] = match;
  if (whole === "" && fraction === "") throw new QuantityError(text);
  const digits = BigInt(whole + fraction);
  let exponent = -fraction.length;
  let multiplier = 1n;
  let family: QuantityFamily = "decimal";
  if (exponentMark !== undefined) {
    family = "exponent";
    const given = Number(exponentText);
    if (Math.abs(given) > LARGEST_EXPONENT) throw new QuantityError(text);
    exponent += given;
  } else if (binarySuffix !== undefined) {
    family = "binary";
    multiplier = 1024n ** BigInt(BINARY_SUFFIXES.indexOf(binarySuffix));
  } else {
    exponent += DECIMAL_EXPONENTS[decimalSuffix] ?? 0;
  }
  let nano = scaleUp(digits * multiplier, exponent + 9);
  if (family === "binary") {
    if (nano > LARGEST_BINARY_NANO) nano = LARGEST_BINARY_NANO;
    // Less than one byte cannot be written with a binary suffix.
    if (nano > 0n && nano < NANO) family = "decimal";
  }
  return { nano: sign === "-" ? -nano : nano, family };
}

/** The amount, or undefined when the text is no quantity. */
export function tryParseQuantity(text: string): Amount | undefined {
  try {
    return parseQuantity(text);
  } catch {
    return undefined;
  }
}

/** The canonical text: no fraction, the largest suffix that loses nothing, the family of the input. */
export function formatQuantity(amount: Amount): string {
  if (amount.nano === 0n) return "0";
  const kib = 1024n * NANO;
  if (amount.family === "binary" && (amount.nano <= -kib || amount.nano >= kib) && amount.nano % NANO === 0n) {
    return formatBinary(amount.nano / NANO);
  }
  let mantissa = amount.nano;
  let step = 0;
  const isExponent = amount.family === "exponent";
  while (mantissa % 1000n === 0n && (isExponent || step < DECIMAL_SUFFIXES.length - 1)) {
    mantissa /= 1000n;
    step++;
  }
  if (!isExponent) return `${mantissa}${DECIMAL_SUFFIXES[step]}`;
  const exponent = step * 3 - 9;
  return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
}

/** The canonical form of a quantity text. Throws `QuantityError`. */
export function canonicalQuantity(text: string): string {
  return formatQuantity(parseQuantity(text));
}

/** -1, 0 or 1. */
export function compareAmounts(a: Amount, b: Amount): number {
  if (a.nano === b.nano) return 0;
  return a.nano < b.nano ? -1 : 1;
}

/** The sum, in the family of `a` unless `a` is zero. */
export function addAmounts(a: Amount, b: Amount): Amount {
  return { nano: a.nano + b.nano, family: a.nano === 0n ? b.family : a.family };
}

/** The difference, in the family of `a` unless `a` is zero. */
export function subtractAmounts(a: Amount, b: Amount): Amount {
  return { nano: a.nano - b.nano, family: a.nano === 0n ? b.family : a.family };
}

/** The larger of the two. */
export function largerAmount(a: Amount, b: Amount): Amount {
  return compareAmounts(a, b) >= 0 ? a : b;
}

/** The amount rounded away from zero to whole thousandths, as the API server stores resources. */
export function roundUpToMilli(amount: Amount): Amount {
  return { nano: divideUp(amount.nano, 1_000_000n) * 1_000_000n, family: amount.family };
}

/** Thousandths, rounded up; see `toSafeNumber` for huge ones. */
export function milliValue(amount: Amount): number {
  return toSafeNumber(divideUp(amount.nano, 1_000_000n));
}

/** Whole units (bytes, cores), rounded up; see `toSafeNumber` for huge ones. */
export function wholeValue(amount: Amount): number {
  return toSafeNumber(divideUp(amount.nano, NANO));
}

export function isZero(amount: Amount): boolean {
  return amount.nano === 0n;
}

/** Numbers stop being exact at 2^53 (8 PiB); what is above is far over any machine and is cut there, never wrapped. */
function toSafeNumber(value: bigint): number {
  const limit = BigInt(Number.MAX_SAFE_INTEGER);
  if (value > limit) return Number.MAX_SAFE_INTEGER;
  return value < -limit ? -Number.MAX_SAFE_INTEGER : Number(value);
}

function formatBinary(value: bigint): string {
  let mantissa = value;
  let step = 0;
  while (mantissa % 1024n === 0n && step < BINARY_SUFFIXES.length - 1) {
    mantissa /= 1024n;
    step++;
  }
  return `${mantissa}${BINARY_SUFFIXES[step]}`;
}

function scaleUp(value: bigint, exponent: number): bigint {
  return exponent >= 0 ? value * 10n ** BigInt(exponent) : divideUp(value, 10n ** BigInt(-exponent));
}

/** Division that rounds away from zero. */
function divideUp(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  if (value % divisor === 0n) return quotient;
  return value < 0n ? quotient - 1n : quotient + 1n;
}
