import { formatDuration, parseDuration } from "../model/duration.ts";
import type { OptionKind } from "./option.ts";

/** Any text. */
export const text = (placeholder = "TEXT"): OptionKind<string> => ({
  placeholder,
  parse: (word) => word,
  show: (value) => value,
});

/** One of a few words. */
export const oneOf = <Word extends string>(...words: readonly Word[]): OptionKind<Word> => ({
  placeholder: words.join("|"),
  parse(word) {
    const found = words.find((candidate) => candidate === word);
    if (found === undefined) throw new Error(`must be one of ${words.join(", ")}`);
    return found;
  },
  show: (value) => value,
});

const TRUE_WORDS = new Set(["1", "t", "T", "true", "True", "TRUE"]);
const FALSE_WORDS = new Set(["0", "f", "F", "false", "False", "FALSE"]);

/** True or false; the bare flag means true and never takes the next word. */
export const bool: OptionKind<boolean> = {
  placeholder: "",
  bare: "true",
  parse(word) {
    if (TRUE_WORDS.has(word)) return true;
    if (FALSE_WORDS.has(word)) return false;
    throw new Error("must be true or false");
  },
  show: String,
};

const INTEGER = /^[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)$/;

/** A whole number of 32 bits, also in Go's hexadecimal, octal and binary forms. */
export const int: OptionKind<number> = {
  placeholder: "N",
  parse(word) {
    if (!INTEGER.test(word)) throw new Error("must be a whole number");
    const digits = word.replace(/^[+-]/, "").replace(/^0([0-7]+)$/, "0o$1");
    const value = word.startsWith("-") ? -Number(digits) : Number(digits);
    if (value > 2147483647 || value < -2147483648) throw new Error("must fit in 32 bits");
    return value;
  },
  show: String,
};

/** A whole number, or nothing given. */
export const optionalInt: OptionKind<number | undefined> = {
  placeholder: "N",
  parse: (word) => int.parse(word, undefined),
  show: (value) => (value === undefined ? "" : String(value)),
};

/** A span such as `20s`, `1.5h` or `2h45m`, held as milliseconds. */
export const duration: OptionKind<number> = {
  placeholder: "DURATION",
  parse(word) {
    try {
      return parseDuration(word);
    } catch {
      throw new Error("must be a duration such as 20s, 1m30s or 1.5h");
    }
  },
  show: formatDuration,
};

/** Words between commas; the first occurrence replaces the default, later ones append. */
export const list = (placeholder = "A,B"): OptionKind<readonly string[]> => ({
  placeholder,
  parse: (word, before) => [...(before ?? []), ...(word === "" ? [] : word.split(","))],
  show: (value) => value.join(","),
});

/** HTTP headers by name. */
export type Headers = Readonly<Record<string, readonly string[]>>;

/** `name:value` pairs between commas; occurrences add up, and so do equal names. */
export const headers: OptionKind<Headers> = {
  placeholder: "NAME:VALUE",
  parse(word, before) {
    const found: Record<string, readonly string[]> = { ...before };
    for (const pair of word.split(",")) {
      if (pair.trim() === "") continue;
      const colon = pair.indexOf(":");
      const name = pair.slice(0, colon).trim();
      if (colon < 0) throw new Error("each header must be NAME:VALUE");
      if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name))
        throw new Error("a header name has a character that is not allowed");
      found[name] = [...(found[name] ?? []), pair.slice(colon + 1).trim()];
    }
    return found;
  },
  show: (value) => Object.keys(value).join(","),
};
