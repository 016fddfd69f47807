import { messageOf } from "../lib/errors.ts";
import { formatDuration, parseDuration } from "../model/duration.ts";
import { tryParseQuantity } from "../model/quantity.ts";
import type { DecodeReport, OptionKind } from "./option.ts";

/** A text field given another type: YAML reads unquoted numbers and yes/no as such. */
export function decodeText(value: unknown, report: DecodeReport): string | undefined {
  if (typeof value === "string") return value;
  const isScalar = typeof value === "number" || typeof value === "boolean";
  report.problem([], value, isScalar ? "must be text; put it in quotes" : "must be text");
  return undefined;
}

/** Reads text from a file with the rule of the flag. */
function decodeWith<T>(parse: (text: string) => T): OptionKind<T>["decode"] {
  return (value, report) => {
    const text = decodeText(value, report);
    if (text === undefined) return undefined;
    try {
      return parse(text);
    } catch (error) {
      report.problem([], value, messageOf(error));
      return undefined;
    }
  };
}

/** Any text. */
export const text = (placeholder = "TEXT"): OptionKind<string> => ({
  placeholder,
  type: "string",
  parse: (word) => word,
  decode: decodeText,
  encode: (value) => value,
  show: (value) => value,
});

/** One of a few words. */
export const oneOf = <Word extends string>(...words: readonly Word[]): OptionKind<Word> => {
  const parse = (word: string): Word => {
    const found = words.find((candidate) => candidate === word);
    if (found === undefined) throw new Error(`must be one of ${words.map((each) => each || '""').join(", ")}`);
    return found;
  };
  const placeholder = words.filter((word) => word !== "").join("|");
  const type = words.map((word) => `\`${word || '""'}\``).join(" ");
  return { placeholder, type, parse, decode: decodeWith(parse), encode: (value) => value, show: (value) => value };
};

const TRUE_WORDS = new Set(["1", "t", "T", "true", "True", "TRUE"]);
const FALSE_WORDS = new Set(["0", "f", "F", "false", "False", "FALSE"]);

/** The booleans that Go reads. Throws. */
export function parseBool(word: string): boolean {
  if (TRUE_WORDS.has(word)) return true;
  if (FALSE_WORDS.has(word)) return false;
  throw new Error("must be true or false");
}

/** True or false; the bare flag means true and never takes the next word. */
export const bool: OptionKind<boolean> = {
  placeholder: "",
  type: "bool",
  bare: "true",
  parse: parseBool,
  decode(value, report) {
    if (typeof value === "boolean") return value;
    report.problem([], value, "must be true or false");
    return undefined;
  },
  encode: (value) => value,
  show: String,
};

/** True, false, or nothing given. */
export const optionalBool: OptionKind<boolean | undefined> = {
  ...bool,
  show: (value) => (value === undefined ? "" : String(value)),
};

/** Binary digits of 64 bits, a sign and a prefix. */
const LONGEST_INTEGER = 70;
const INTEGER = /^[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)$/;

/** 32 bits exactly; of 64 bits what a number cannot hold exactly is cut to what it can, which is as good as endless. */
function integerKind(bits: 32 | 64): OptionKind<number> {
  const most = 2n ** BigInt(bits - 1) - 1n;
  const fit = (value: bigint): number => {
    if (value > most || value < -most - 1n) throw new Error(`must fit in ${bits} bits`);
    return Math.max(-Number.MAX_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(value)));
  };
  return {
    placeholder: "N",
    type: `int${bits}`,
    parse(word) {
      if (!INTEGER.test(word) || word.length > LONGEST_INTEGER) throw new Error("must be a whole number");
      const digits = word.replace(/^[+-]/, "").replace(/^0([0-7]+)$/, "0o$1");
      return fit(word.startsWith("-") ? -BigInt(digits) : BigInt(digits));
    },
    decode(value, report) {
      // YAML and JSON numbers near 2^63 come rounded up to it.
      const isEdge = bits === 64 && value === 2 ** 63;
      try {
        if (typeof value !== "number" || !Number.isInteger(value)) throw new Error("must be a whole number");
        return fit(isEdge ? most : BigInt(value));
      } catch (error) {
        report.problem([], value, messageOf(error));
        return undefined;
      }
    },
    encode: (value) => value,
    show: String,
  };
}

/** A whole number of 32 bits, also in Go's hexadecimal, octal and binary forms. */
export const int: OptionKind<number> = integerKind(32);
/** A whole number of 64 bits. */
export const int64: OptionKind<number> = integerKind(64);

/** A whole number, or nothing given. */
export const optionalInt: OptionKind<number | undefined> = {
  ...int,
  parse: (word) => int.parse(word, undefined),
  encode: (value) => value,
  show: (value) => (value === undefined ? "" : String(value)),
};

/** Without the sign of a zero, which is lost when it is written. */
function unsignedZero(value: number): number {
  return value === 0 ? 0 : value;
}

/** A number with a fraction. */
export const float: OptionKind<number> = {
  placeholder: "NUMBER",
  type: "float",
  parse(word) {
    const value = word.trim() === "" ? Number.NaN : Number(word);
    if (!Number.isFinite(value)) throw new Error("must be a number");
    return unsignedZero(value);
  },
  decode(value, report) {
    if (typeof value === "number" && Number.isFinite(value)) return unsignedZero(value);
    report.problem([], value, "must be a number");
    return undefined;
  },
  encode: (value) => value,
  show: String,
};

function parseSpan(word: string): number {
  try {
    return parseDuration(word);
  } catch {
    throw new Error("must be a duration such as 20s, 1m30s or 1.5h");
  }
}

/** A span such as `20s`, `1.5h` or `2h45m`, held as milliseconds. */
export const duration: OptionKind<number> = {
  placeholder: "DURATION",
  type: "duration",
  parse: parseSpan,
  decode(value, report) {
    if (typeof value === "string") return decodeWith(parseSpan)(value, report);
    report.problem([], value, "must be a duration such as 20s, 1m30s or 1.5h");
    return undefined;
  },
  encode: formatDuration,
  show: formatDuration,
};

/** A span, or nothing given. */
export const optionalSpan: OptionKind<number | undefined> = {
  ...duration,
  parse: (word) => parseSpan(word),
  encode: (value) => (value === undefined ? undefined : formatDuration(value)),
  show: (value) => (value === undefined ? "" : formatDuration(value)),
};

/** A span that a file may also give as nanoseconds, and that is written as it was given. */
export const spanOrNanos: OptionKind<number | string> = {
  ...duration,
  type: "duration, or nanoseconds",
  parse: (word) => formatDuration(parseSpan(word)),
  decode(value, report) {
    if (typeof value === "number" && Number.isSafeInteger(value)) return unsignedZero(value);
    return duration.decode(value, report) === undefined ? undefined : String(value);
  },
  encode: (value) => value,
  show: String,
};

/** Milliseconds of a `spanOrNanos` value. */
export function spanMs(value: number | string): number {
  return typeof value === "number" ? value / 1_000_000 : parseSpan(value);
}

function parseAmount(word: string): string {
  if (tryParseQuantity(word) === undefined) throw new Error("must be a quantity such as 10Mi, 500m or 1.5");
  return word;
}

/** An amount such as `10Mi`, kept as it was written. */
export const quantity: OptionKind<string> = {
  ...text("QUANTITY"),
  type: "quantity",
  parse: parseAmount,
  decode: decodeWith(parseAmount),
};
