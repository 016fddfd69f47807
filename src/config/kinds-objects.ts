import { tryParseQuantity } from "../model/quantity.ts";
import { decodeText, int, int64 } from "./kinds.ts";
import { below, decodeList, decodeObject, leaveOutEmpty, setOwn } from "./kinds-lists.ts";
import type { DecodeReport, OptionKind } from "./option.ts";

interface FieldForm<T> {
  decode(value: unknown, report: DecodeReport): T | undefined;
  readonly required?: boolean;
}

/** A JSON object with known fields; undefined after a problem. Null and missing are the same. */
function decodeStruct<T extends object>(
  value: unknown,
  report: DecodeReport,
  fields: { readonly [Name in keyof T]-?: FieldForm<Exclude<T[Name], undefined>> },
): T | undefined {
  const given = decodeObject(value, report);
  if (given === undefined) return undefined;
  const forms = Object.entries<FieldForm<unknown>>(fields);
  const known = forms.map(([name]) => name);
  for (const name of Object.keys(given)) if (!known.includes(name)) report.unknownKey([name], known);
  const found: Record<string, unknown> = {};
  let isWhole = true;
  for (const [name, form] of forms) {
    const each = Object.hasOwn(given, name) ? given[name] : undefined;
    if (each === undefined || each === null) {
      if (form.required === true) report.problem([name], undefined, "is required");
      isWhole &&= form.required !== true;
      continue;
    }
    const decoded = form.decode(each, below(report, name));
    if (decoded === undefined) isWhole = false;
    else found[name] = decoded;
  }
  return isWhole ? (found as T) : undefined; // reason: every field was decoded by its own form
}

/** A list of objects, which a flag may write in a form of its own. */
function objectList<T extends object>(form: {
  readonly placeholder: string;
  readonly type: string;
  parse(text: string, before: readonly T[] | undefined): readonly T[];
  decode(value: unknown, report: DecodeReport): T | undefined;
  show(value: T): string;
  readonly joint: string;
}): OptionKind<readonly T[]> {
  return {
    placeholder: form.placeholder,
    type: form.type,
    parse: form.parse,
    decode: (value, report) => decodeList(value, report, form.decode),
    encode: leaveOutEmpty,
    show: (value) => value.map((each) => form.show(each)).join(form.joint),
  };
}

/** A taint of the node at its registration. */
export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
  /** Only to be refused: it is set by the cluster. */
  readonly timeAdded?: string;
}

/** `key=value:Effect` or `key:Effect`, between commas; a later occurrence replaces. */
export const taints: OptionKind<readonly Taint[]> = objectList<Taint>({
  placeholder: "KEY=VALUE:EFFECT,...",
  type: "list of {key, value, effect}",
  joint: ",",
  parse: (word) => (word === "" ? [] : word.split(",").map(parseTaint)),
  decode: (value, report) =>
    decodeStruct<Taint>(value, report, {
      key: { decode: decodeText, required: true },
      value: { decode: decodeText },
      effect: { decode: decodeText, required: true },
      timeAdded: { decode: decodeText },
    }),
  show: ({ key, value, effect }) => `${key}${value === undefined || value === "" ? "" : `=${value}`}:${effect}`,
});

function parseTaint(word: string): Taint {
  const match = /^([^=:]+)(?:=([^:]*))?:([A-Za-z]+)$/.exec(word);
  if (match === null) throw new Error("each taint must be KEY=VALUE:EFFECT or KEY:EFFECT");
  const [, key = "", value = "", effect = ""] = match;
  return { key, ...(value === "" ? {} : { value }), effect };
}

/** Memory of one NUMA node that pods do not get. */
export interface ReservedMemory {
  readonly numaNode: number;
  readonly limits: Readonly<Record<string, string>>;
}

/** `0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi`, repeatable. */
export const reservedMemory: OptionKind<readonly ReservedMemory[]> = objectList<ReservedMemory>({
  placeholder: "NODE:TYPE=AMOUNT;...",
  type: "list of {numaNode, limits}",
  joint: ";",
  parse: (word, before) => [...(before ?? []), ...(word === "" ? [] : word.split(";").map(parseNodeMemory))],
  decode: (value, report) =>
    decodeStruct<ReservedMemory>(value, report, {
      numaNode: { decode: int.decode, required: true },
      limits: { decode: decodeAmounts, required: true },
    }),
  show: ({ numaNode, limits }) =>
    `${numaNode}:${Object.entries(limits)
      .map(([name, amount]) => `${name}=${amount}`)
      .join(",")}`,
});

function parseNodeMemory(word: string): ReservedMemory {
  const colon = word.indexOf(":");
  if (colon < 0) throw new Error("each part must be NODE:TYPE=AMOUNT,...");
  const numaNode = int.parse(word.slice(0, colon).trim(), undefined);
  const limits: Record<string, string> = {};
  for (const pair of word.slice(colon + 1).split(",")) {
    const [name = "", amount = "", ...more] = pair.split("=");
    if (name.trim() === "" || more.length > 0 || tryParseQuantity(amount.trim()) === undefined) {
      throw new Error("each part must be NODE:TYPE=AMOUNT,...");
    }
    if (Object.hasOwn(limits, name.trim())) throw new Error(`${name.trim()} is given twice for node ${numaNode}`);
    setOwn(limits, name.trim(), amount.trim());
  }
  return { numaNode, limits };
}

/** Amounts by resource; JSON numbers are quantities too. */
function decodeAmounts(value: unknown, report: DecodeReport): Readonly<Record<string, string>> | undefined {
  const given = decodeObject(value, report);
  if (given === undefined) return undefined;
  const found: Record<string, string> = {};
  let isWhole = true;
  for (const [name, each] of Object.entries(given)) {
    const amount = typeof each === "number" ? String(each) : each;
    if (typeof amount === "string" && tryParseQuantity(amount) !== undefined) setOwn(found, name, amount);
    else {
      report.problem([name], each, "must be a quantity such as 1Gi");
      isWhole = false;
    }
  }
  return isWhole ? found : undefined;
}

/** How long pods of at least this priority get at a node shutdown. */
export interface PriorityGrace {
  readonly priority: number;
  readonly shutdownGracePeriodSeconds: number;
}

export const priorityGraces: OptionKind<readonly PriorityGrace[]> = objectList<PriorityGrace>({
  placeholder: "",
  type: "list of {priority, shutdownGracePeriodSeconds}",
  joint: ",",
  parse: () => {
    throw new Error("can only be set in a configuration file");
  },
  decode: (value, report) =>
    decodeStruct<PriorityGrace>(value, report, {
      priority: { decode: int.decode, required: true },
      shutdownGracePeriodSeconds: { decode: int64.decode, required: true },
    }),
  show: ({ priority, shutdownGracePeriodSeconds }) => `${priority}=${shutdownGracePeriodSeconds}s`,
});

/** The verbosity of the source files that a pattern names. */
export interface ModuleLevel {
  readonly filePattern: string;
  readonly verbosity: number;
}

/** `pattern=N,pattern=N`; a later occurrence replaces. */
export const moduleLevels: OptionKind<readonly ModuleLevel[]> = objectList<ModuleLevel>({
  placeholder: "PATTERN=N,...",
  type: "list of {filePattern, verbosity}",
  joint: ",",
  parse: (word) =>
    word
      .split(",")
      .filter((pair) => pair !== "")
      .map((pair) => {
        const match = /^([^=]+)=(\d{1,10})$/.exec(pair);
        if (match === null) throw new Error("must be PATTERN=N pairs between commas");
        return { filePattern: match[1] ?? "", verbosity: int.parse(String(Number(match[2])), undefined) };
      }),
  decode: (value, report) =>
    decodeStruct<ModuleLevel>(value, report, {
      filePattern: { decode: decodeText, required: true },
      verbosity: { decode: int.decode, required: true },
    }),
  show: ({ filePattern, verbosity }) => `${filePattern}=${verbosity}`,
});

/** Where traces go; undefined: nowhere. */
export interface Tracing {
  readonly endpoint?: string;
  readonly samplingRatePerMillion?: number;
}

/** An object whose presence alone turns the feature on. */
export const tracing: OptionKind<Tracing | undefined> = {
  placeholder: "",
  type: "{endpoint, samplingRatePerMillion}",
  merges: true,
  parse: () => {
    throw new Error("can only be set in a configuration file");
  },
  decode: (value, report) =>
    decodeStruct<Tracing>(value, report, {
      endpoint: { decode: decodeText },
      samplingRatePerMillion: { decode: int.decode },
    }),
  encode: (value) => value,
  show: (value) =>
    value === undefined ? "" : `${value.endpoint ?? "localhost:4317"} ${value.samplingRatePerMillion ?? 0}`,
};
