import { linePath } from "../lib/line-path.ts";
import { type OptionName, optionNames, optionOf } from "./agent-options.ts";
import { type ConfigProblem, fieldPath, shownIfPublic } from "./config-problem.ts";
import { didYouMean } from "./rules.ts";

/** A configuration file as it was parsed. */
export interface ConfigDocument {
  /** As it is shown in messages. */
  readonly file: string;
  /** The absolute directory that relative paths start from. */
  readonly directory: string;
  readonly value: unknown;
  /** The line on which it starts, and of each key where known. */
  readonly line: number;
  readonly lines?: ReadonlyMap<string, number> | undefined;
  /** What the parser noted: keys that are set twice. */
  readonly warnings: readonly string[];
}

export const API_VERSION = "kubelet.config.k8s.io/v1beta1";
export const KIND = "KubeletConfiguration";

/** The value that a document has for an option; `isNull` if it is null there or above. */
export interface DocumentEntry {
  readonly option: OptionName;
  readonly raw: unknown;
  readonly isNull: boolean;
  /** In the form of `ConfigDocument.lines`. */
  readonly path: string;
}

/** A key that no option has. */
export interface UnknownKey {
  readonly field: string;
  readonly raw: unknown;
  readonly line: number | undefined;
  readonly known: readonly string[];
}

interface Branch {
  readonly option?: OptionName;
  readonly children: Map<string, Branch>;
}

let tree: Branch | undefined;

/** The fields of all options as a tree. Made at first use. */
function fieldTree(): Branch {
  if (tree !== undefined) return tree;
  const root: Branch = { children: new Map() };
  for (const option of optionNames) {
    const steps = optionOf(option).field?.split(".") ?? [];
    let branch = root;
    for (const [index, step] of steps.entries()) {
      const next: Branch = branch.children.get(step) ?? {
        children: new Map(),
        ...(index === steps.length - 1 ? { option } : {}),
      };
      branch.children.set(step, next);
      branch = next;
    }
  }
  tree = root;
  return root;
}

/** The names of all top-level fields. */
export function topLevelFields(): readonly string[] {
  return [...fieldTree().children.keys()];
}

/** Sorts the values of a document to the options they are for. Does not judge the values. */
export function sortDocument(document: ConfigDocument): {
  readonly entries: readonly DocumentEntry[];
  readonly unknown: readonly UnknownKey[];
  readonly problems: readonly ConfigProblem[];
} {
  const entries: DocumentEntry[] = [];
  const unknown: UnknownKey[] = [];
  const problems: ConfigProblem[] = [];
  const visit = (branch: Branch, value: unknown, place: { path: string; field: string }): void => {
    const isNull = value === null || value === undefined;
    if (branch.option !== undefined) {
      entries.push({ option: branch.option, raw: value, isNull, path: place.path });
      return;
    }
    if (isNull) {
      for (const child of branch.children.values()) visit(child, null, place);
      return;
    }
    if (typeof value !== "object" || Array.isArray(value)) {
      const line = lineOf(document, place.path);
      const message = "must be a map of keys and values";
      problems.push({ file: document.file, line, field: place.field, value: shownIfPublic(value, false), message });
      return;
    }
    for (const [name, each] of Object.entries(value)) {
      if (place.path === "" && (name === "apiVersion" || name === "kind")) continue;
      const path = linePath(place.path, name);
      const field = place.field === "" ? name : `${place.field}.${name}`;
      const child = branch.children.get(name);
      if (child !== undefined) visit(child, each, { path, field });
      else unknown.push({ field, raw: each, line: lineOf(document, path), known: [...branch.children.keys()] });
    }
  };
  visit(fieldTree(), document.value, { path: "", field: "" });
  return { entries, unknown, problems };
}

/** The line of a path, or of the nearest part above it that has one. */
export function lineOf(document: ConfigDocument, path: string): number | undefined {
  for (let at = path; at !== ""; at = at.slice(0, at.lastIndexOf("/"))) {
    const line = document.lines?.get(at);
    if (line !== undefined) return line;
  }
  return document.line;
}

/** An unknown key as what it is: a warning, unless strict. */
export function unknownField(
  document: ConfigDocument,
  { field, line, known }: UnknownKey,
  was?: { readonly warning?: string; readonly problem?: string },
): ConfigProblem {
  const last = field.slice(field.lastIndexOf(".") + 1);
  const history = was?.problem ?? was?.warning;
  const more = history === undefined ? didYouMean(last, known) : `; it was one once: ${history}`;
  const message = `is no field of ${KIND} and has no effect${more}`;
  return { file: document.file, line, field, value: "", message, isStrictness: true };
}

/** Decodes an entry by its option's kind; undefined after it added problems. */
export function decodeEntry(
  document: ConfigDocument,
  entry: DocumentEntry,
  out: { readonly problems: ConfigProblem[]; readonly warnings: ConfigProblem[] },
): unknown {
  const { kind, field = entry.option, secret = false } = optionOf(entry.option);
  const lineAt = (steps: readonly (string | number)[]): number | undefined =>
    lineOf(document, steps.reduce<string>(linePath, entry.path));
  let isFine = true;
  const decoded = kind.decode(entry.raw, {
    problem(steps, value, message) {
      isFine = false;
      out.problems.push({
        file: document.file,
        line: lineAt(steps),
        field: fieldPath(field, steps),
        message,
        value: shownIfPublic(value, secret),
      });
    },
    unknownKey(steps, known) {
      const last = String(steps.at(-1));
      out.warnings.push({
        file: document.file,
        line: lineAt(steps),
        field: fieldPath(field, steps),
        value: "",
        isStrictness: true,
        message: `is no field here and has no effect${didYouMean(last, known)}`,
      });
    },
  });
  return isFine ? decoded : undefined;
}

/** The same for a file of an older kubelet: what is a list or a map today was once written like the flag. */
export function decodeOldEntry(
  document: ConfigDocument,
  entry: DocumentEntry,
  out: { readonly problems: ConfigProblem[]; readonly warnings: ConfigProblem[] },
): unknown {
  const tried = { problems: [] as ConfigProblem[], warnings: out.warnings };
  const raw = typeof entry.raw === "number" ? Math.ceil(entry.raw) : entry.raw;
  const { kind } = optionOf(entry.option);
  const decoded = decodeEntry(document, kind.type === "int32" ? { ...entry, raw } : entry, tried);
  if (decoded !== undefined || typeof raw !== "string") {
    out.problems.push(...tried.problems);
    return decoded;
  }
  try {
    return kind.parse(raw, undefined);
  } catch {
    out.problems.push(...tried.problems);
    return undefined;
  }
}

/** What is wrong with the head of a document; `versions` are those that are read. */
export function headProblem(document: ConfigDocument, versions: readonly string[]): ConfigProblem | undefined {
  const { file, line, value } = document;
  const whole = { file, line, field: "", value: "" };
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { ...whole, message: `must be a ${KIND}, a map of fields` };
  }
  const { apiVersion, kind } = value as { apiVersion?: unknown; kind?: unknown }; // reason: an object, just checked
  if (apiVersion === undefined || kind === undefined) {
    return { ...whole, message: `must begin with apiVersion: ${API_VERSION} and kind: ${KIND}` };
  }
  if (kind !== KIND) {
    const message = `must be ${KIND}`;
    return { ...whole, line: lineOf(document, "/kind"), field: "kind", value: shownIfPublic(kind, false), message };
  }
  if (typeof apiVersion === "string" && versions.includes(apiVersion)) return undefined;
  const message = `must be ${versions.join(" or ")}`;
  const shown = shownIfPublic(apiVersion, false);
  return { ...whole, line: lineOf(document, "/apiVersion"), field: "apiVersion", value: shown, message };
}
