import { messageOf } from "../lib/errors.ts";
import { formatDuration, parseDuration } from "../model/duration.ts";
import { decodeText, int, parseBool } from "./kinds.ts";
import type { DecodeReport, OptionKind } from "./option.ts";

type Path = readonly (string | number)[];

/** The same report, from a place inside the value. */
export function below(report: DecodeReport, ...steps: Path): DecodeReport {
  return {
    problem: (path, value, message) => report.problem([...steps, ...path], value, message),
    unknownKey: (path, known) => report.unknownKey([...steps, ...path], known),
  };
}

/** A JSON object, or undefined after it reported that it is none. */
export function decodeObject(value: unknown, report: DecodeReport): Readonly<Record<string, unknown>> | undefined {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>; // reason: just checked; JSON objects have text keys
  }
  report.problem([], value, "must be a map of keys and values");
  return undefined;
}

/** A JSON list with each item decoded; undefined after a problem. */
export function decodeList<T>(
  value: unknown,
  report: DecodeReport,
  item: (value: unknown, report: DecodeReport) => T | undefined,
): readonly T[] | undefined {
  if (!Array.isArray(value)) {
    report.problem([], value, "must be a list");
    return undefined;
  }
  const found: T[] = [];
  for (const [index, each] of value.entries()) {
    const decoded = item(each, below(report, index));
    if (decoded !== undefined) found.push(decoded);
  }
  return found.length === value.length ? found : undefined;
}

/** Words between commas; the first occurrence replaces the default, later ones append. */
export const list = (placeholder = "A,B"): OptionKind<readonly string[]> => ({
  placeholder,
  type: "list of strings",
  parse: (word, before) => [...(before ?? []), ...(word === "" ? [] : word.split(","))],
  decode: (value, report) => decodeList(value, report, decodeText),
  encode: (value) => value,
  show: (value) => value.join(","),
});

/** Whole numbers between commas. */
export const intList: OptionKind<readonly number[]> = {
  placeholder: "N,N",
  type: "list of int32",
  parse: (word, before) => [
    ...(before ?? []),
    ...(word === "" ? [] : word.split(",").map((part) => int.parse(part, undefined))),
  ],
  decode: (value, report) => decodeList(value, report, int.decode),
  encode: (value) => value,
  show: (value) => value.join(","),
};

/** HTTP headers by name. */
export type Headers = Readonly<Record<string, readonly string[]>>;

/** `name:value` pairs between commas; occurrences add up, and so do equal names. */
export const headers: OptionKind<Headers> = {
  placeholder: "NAME:VALUE",
  type: "map of string lists",
  merges: true,
  parse(word, before) {
    const found: Record<string, readonly string[]> = { ...before };
    for (const pair of word.split(",")) {
      if (pair.trim() === "") continue;
      const colon = pair.indexOf(":");
      const name = pair.slice(0, colon).trim();
      if (colon < 0) throw new Error("each header must be NAME:VALUE");
      if (!isHeaderName(name)) throw new Error("a header name has a character that is not allowed");
      setOwn(found, name, [...(own(found, name) ?? []), pair.slice(colon + 1).trim()]);
    }
    return found;
  },
  decode(value, report) {
    const given = decodeObject(value, report);
    if (given === undefined) return undefined;
    const found: Record<string, readonly string[]> = {};
    for (const [name, each] of Object.entries(given)) {
      if (!isHeaderName(name)) report.problem([name], "", "is no header name");
      const values = decodeList(each, below(report, name), decodeText);
      if (values !== undefined) setOwn(found, name, values);
    }
    return found;
  },
  encode: leaveOutEmpty,
  show: (value) => Object.keys(value).join(","),
};

function isHeaderName(name: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name);
}

/** An empty map is the same as none. */
export function leaveOutEmpty(value: object): unknown {
  return Object.keys(value).length === 0 ? undefined : value;
}

/** What a key has of its own: `__proto__` and the like come from outside too. */
function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/** Sets a key that came from outside; plain assignment of `__proto__` would set the prototype. */
export function setOwn(record: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(record, key, { value, enumerable: true, writable: true, configurable: true });
}

/** How a map of one kind is written as a flag and as a file. */
interface MapForm<T> {
  readonly placeholder: string;
  readonly type: string;
  /** Between key and value. */
  readonly sign: string;
  /** Whether one flag holds several pairs between commas. */
  readonly isSplit: boolean;
  /** A key without the sign means this; undefined when the sign is required. */
  readonly bareValue?: string;
  parse(word: string): T;
  decode(value: unknown, report: DecodeReport): T | undefined;
  encode(value: T): unknown;
  show(value: T): string;
}

/** A map by name; the first occurrence of its flag replaces the file's, later ones add. */
export function mapKind<T>(form: MapForm<T>): OptionKind<Readonly<Record<string, T>>> {
  const { placeholder, type, sign } = form;
  return {
    placeholder,
    type,
    merges: true,
    parse(word, before) {
      const found: Record<string, T> = { ...before };
      for (const pair of form.isSplit ? word.split(",") : [word]) {
        if (pair.trim() === "") continue;
        const at = pair.indexOf(sign);
        if (at < 0 && form.bareValue === undefined) throw new Error(`each pair must be KEY${sign}VALUE`);
        const key = (at < 0 ? pair : pair.slice(0, at)).trim();
        const value = at < 0 ? (form.bareValue ?? "") : pair.slice(at + sign.length).trim();
        if (key === "") throw new Error(`each pair must be KEY${sign}VALUE`);
        setOwn(
          found,
          key,
          namingKey(key, () => form.parse(value)),
        );
      }
      return found;
    },
    decode(value, report) {
      const given = decodeObject(value, report);
      if (given === undefined) return undefined;
      const found: Record<string, T> = {};
      for (const [key, each] of Object.entries(given)) {
        const decoded = form.decode(each, below(report, key));
        if (decoded !== undefined) setOwn(found, key, decoded);
      }
      return found;
    },
    encode: (value) => {
      const written: Record<string, unknown> = {};
      for (const [key, each] of Object.entries(value)) setOwn(written, key, form.encode(each));
      return leaveOutEmpty(written);
    },
    show: (value) =>
      Object.entries(value)
        .map(([key, each]) => `${key}${sign}${form.show(each)}`)
        .join(","),
  };
}

function namingKey<T>(key: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new Error(`${key}: ${messageOf(error)}`, { cause: error });
  }
}

const plain = {
  type: "map of strings",
  parse: (word: string) => word,
  decode: decodeText,
  encode: String,
  show: String,
};

/** `key=value,key=value`. */
export const textMap = (placeholder = "KEY=VALUE,..."): OptionKind<Readonly<Record<string, string>>> =>
  mapKind({ ...plain, placeholder, sign: "=", isSplit: true });

/** One `key=value` an occurrence; commas belong to the value. */
export const singleMap: OptionKind<Readonly<Record<string, string>>> = mapKind({
  ...plain,
  placeholder: "KEY=VALUE",
  sign: "=",
  isSplit: false,
});

/** Labels: a key alone has an empty value. */
export const labelMap: OptionKind<Readonly<Record<string, string>>> = mapKind({
  ...plain,
  placeholder: "KEY=VALUE,...",
  sign: "=",
  isSplit: true,
  bareValue: "",
});

/** Eviction thresholds: `memory.available<100Mi,nodefs.available<10%`. */
export const thresholdMap: OptionKind<Readonly<Record<string, string>>> = mapKind({
  ...plain,
  placeholder: "SIGNAL<AMOUNT,...",
  sign: "<",
  isSplit: true,
});

/** Spans by name, in milliseconds: `memory.available=1m30s`. Kept as text, as the file has it. */
export const spanMap: OptionKind<Readonly<Record<string, string>>> = mapKind({
  placeholder: "SIGNAL=DURATION,...",
  type: "map of durations",
  sign: "=",
  isSplit: true,
  parse: (word) => word,
  decode: decodeText,
  encode: String,
  show: String,
});

/** Switches by name: `A=true,B=false`; a name alone is no value. */
export const switchMap: OptionKind<Readonly<Record<string, boolean>>> = mapKind({
  placeholder: "NAME=true|false,...",
  type: "map of booleans",
  sign: "=",
  isSplit: true,
  parse: parseBool,
  decode(value: unknown, report: DecodeReport) {
    if (typeof value === "boolean") return value;
    report.problem([], value, "must be true or false");
    return undefined;
  },
  encode: (value) => value,
  show: String,
});

/** A span in its canonical text, or undefined when it is none. */
export function canonicalSpan(value: string): string | undefined {
  try {
    return formatDuration(parseDuration(value));
  } catch {
    return undefined;
  }
}
