import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  type ScalarTag,
  type Tags,
  visit,
} from "yaml";
import { countValues } from "./count-values.ts";
import { linePath } from "./line-path.ts";
import { ExpandedSize } from "./yaml-parse-size.ts";

/** One document of a text, with the line (from 1) on which it starts. */
export interface ParsedDocument {
  readonly value: unknown;
  readonly line: number;
  /** Only when asked for: the line of each key and list item by its path, `/a/b/0`, with `~1` for a slash in a name. */
  readonly lines?: ReadonlyMap<string, number>;
}

/** What is parsed besides the values. */
export interface ParseWishes {
  /** Fill `lines` of each document. Defaults to false: it costs a second walk. */
  readonly lines?: boolean;
  /** Fields and elements that all documents together may have, with aliases expanded. Defaults to a million. */
  readonly mostValues?: number;
}

const MOST_VALUES = 1_000_000;
/** What a text may expand to, in characters of its strings: as many as the largest that is read. */
const MOST_CHARACTERS = 10 * 1024 * 1024;

export type YamlErrorCode = "Syntax" | "TooLarge" | "TooDeep" | "TooManyAliases" | "TimeLimit" | "OutOfMemory";

/** Plain data, because it crosses from a worker thread. */
export type ParseOutcome =
  | { readonly ok: true; readonly documents: readonly ParsedDocument[]; readonly warnings: readonly string[] }
  | {
      readonly ok: false;
      readonly code: YamlErrorCode;
      readonly message: string;
      readonly line: number | undefined;
      readonly column: number | undefined;
    };

/** Of YAML 1.1, what Kubernetes does not read: base-60 numbers, dates and the collection types. */
const LEFT_OUT = new Set(["binary", "omap", "pairs", "set", "timestamp"].map((name) => `tag:yaml.org,2002:${name}`));

const octalInteger: ScalarTag = {
  tag: "tag:yaml.org,2002:int",
  default: true,
  format: "OCT",
  test: /^[-+]?0o[0-7_]+$/,
  resolve: (text) => {
    const digits = Number.parseInt(text.replace(/^[-+]?0o/, "").replaceAll("_", ""), 8);
    return text.startsWith("-") ? -digits : digits;
  },
};

/** Numbers as Kubernetes reads them: `0644` and `0o644` are octal, `22:22` is text. */
function kubernetesTags(tags: Tags): Tags {
  const kept = tags.filter((tag) => {
    if (typeof tag === "string") return true;
    return !LEFT_OUT.has(tag.tag) && !("format" in tag && tag.format === "TIME");
  });
  return [octalInteger, ...kept];
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

/** Parses YAML or JSON, one or several documents; empty ones are left out. Never throws; may be slow on bad input. */
export function parseText(text: string, wishes: ParseWishes = {}): ParseOutcome {
  const plain = text.startsWith("\ufeff") ? text.slice(1) : text;
  const control = plain.search(FORBIDDEN);
  if (control !== -1) {
    const before = plain.slice(0, control).split("\n");
    const place = { line: before.length, col: (before.at(-1)?.length ?? 0) + 1 };
    return failure("Syntax", "control characters are not allowed", place);
  }
  const json = tryJson(plain);
  const most = wishes.mostValues ?? MOST_VALUES;
  if (json !== undefined && countValues(json.value, most) > most) return tooLarge("TooLarge", most);
  try {
    const outcome: ParseOutcome =
      json === undefined ? parseYaml(plain, wishes) : { ok: true, ...jsonWithLines(plain, json, wishes) };
    const isDeep = outcome.ok && outcome.documents.some(({ value }) => isTooDeep(value));
    return isDeep ? failure("TooDeep", "nested too deeply") : outcome;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (/call stack/i.test(message)) return failure("TooDeep", "nested too deeply");
    return failure("Syntax", message);
  }
}

/** Those who walk a value recursively, the thread's message among them, run out of stack in the thousands. */
const MOST_LEVELS = 500;

/** True also for a value that contains itself. Not recursive, and each part is visited once for each depth it has. */
function isTooDeep(root: unknown): boolean {
  const deepest = new Map<object, number>();
  const rest: [unknown, number][] = [[root, 0]];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const [value, depth] = next;
    if (typeof value !== "object" || value === null || (deepest.get(value) ?? -1) >= depth) continue;
    if (depth > MOST_LEVELS) return true;
    deepest.set(value, depth);
    for (const part of Object.values(value)) rest.push([part, depth + 1]);
  }
  return false;
}

function failure(code: YamlErrorCode, message: string, place?: { line: number; col: number }): ParseOutcome {
  return { ok: false, code, message, line: place?.line, column: place?.col };
}

function tooLarge(code: "TooLarge" | "TooManyAliases", most: number): ParseOutcome {
  // The words of Go's parser.
  if (code === "TooManyAliases") return failure(code, "document contains excessive aliasing");
  return failure(code, `more than ${most} fields and elements`);
}

function tryJson(text: string): ParsedDocument | undefined {
  const start = text.search(/\S/);
  if (start === -1 || (text[start] !== "{" && text[start] !== "[")) return undefined;
  try {
    return { value: JSON.parse(text), line: text.slice(0, start).split("\n").length };
  } catch {
    // YAML has the same brackets, and its parser reports the position of the error.
    return undefined;
  }
}

/** JSON is YAML too, so the same parser knows its lines and doubled keys; where it stumbles there are none. */
function jsonWithLines(
  text: string,
  json: ParsedDocument,
  wishes: ParseWishes,
): { documents: readonly ParsedDocument[]; warnings: readonly string[] } {
  if (wishes.lines === true && text.length <= MOST_JSON_WITH_LINES && !isTooDeep(json.value)) {
    const outcome = parseYaml(text, wishes);
    const [document] = outcome.ok ? outcome.documents : [];
    if (outcome.ok && document?.lines !== undefined) {
      return { documents: [{ ...json, lines: document.lines }], warnings: outcome.warnings };
    }
  }
  return { documents: [json], warnings: [] };
}

/** Above this many characters a JSON text is read without lines: YAML's parser is twenty times slower. */
const MOST_JSON_WITH_LINES = 256 * 1024;
/** Lines are for messages: a document with more keys than this gets them for the first ones. */
const MOST_LINES = 20_000;

function linesOf(root: unknown, counter: LineCounter): Map<string, number> {
  const found = new Map<string, number>();
  const rest: [unknown, string][] = [[root, ""]];
  for (let next = rest.pop(); next !== undefined && found.size < MOST_LINES; next = rest.pop()) {
    const [node, path] = next;
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        if (!isScalar(key)) continue;
        const child = linePath(path, String(key.value));
        found.set(child, counter.linePos(key.range?.[0] ?? 0).line);
        if (!isAlias(value)) rest.push([value, child]);
      }
    } else if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) {
        const child = linePath(path, index);
        const range = isScalar(item) || isMap(item) || isSeq(item) || isAlias(item) ? item.range : undefined;
        found.set(child, counter.linePos(range?.[0] ?? 0).line);
        if (!isAlias(item)) rest.push([item, child]);
      }
    }
  }
  return found;
}

function parseYaml(text: string, wishes: ParseWishes): ParseOutcome {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, {
    version: "1.1",
    uniqueKeys: false,
    customTags: kubernetesTags,
    lineCounter: lines,
    prettyErrors: false,
    logLevel: "silent",
  });
  const documents: ParsedDocument[] = [];
  const warnings: string[] = [];
  const most = wishes.mostValues ?? MOST_VALUES;
  const size = new ExpandedSize({ values: most, characters: MOST_CHARACTERS });
  // For a text without any document the library returns an empty list with errors of its own.
  for (const document of parsed) {
    const [error] = document.errors;
    if (error !== undefined) {
      // The library reports a stack that ran out as a mistake in the text.
      if (/call stack/i.test(error.message)) return failure("TooDeep", "nested too deeply");
      return failure("Syntax", error.message, lines.linePos(error.pos[0]));
    }
    if (document.contents === null || (isScalar(document.contents) && document.contents.value === null)) continue;
    const excess = size.add(document.contents);
    if (excess !== undefined) return tooLarge(excess, most);
    warnings.push(...duplicateKeys(document, lines));
    const line = lines.linePos(document.contents.range?.[0] ?? 0).line;
    const found = wishes.lines === true ? { lines: linesOf(document.contents, lines) } : {};
    // The library's own guard counts no empty collections, and searches the document again for each alias.
    documents.push({ value: document.toJS({ maxAliasCount: -1 }), line, ...found });
  }
  return { ok: true, documents, warnings };
}

/** The library's own check compares each key with each other: 20,000 keys take 3 s. */
function duplicateKeys(document: Parameters<typeof visit>[0], lines: LineCounter): string[] {
  const warnings: string[] = [];
  visit(document, {
    Map(_key, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        if (!isScalar(key) || key.value === "<<") continue;
        const name = String(key.value);
        if (seen.has(name) && warnings.length < 20) {
          const { line } = lines.linePos(key.range?.[0] ?? 0);
          warnings.push(`line ${line}: key ${JSON.stringify(name)} is set twice in one map; the last one counts`);
        }
        seen.add(name);
      }
    },
  });
  return warnings;
}
