import { dirname, join, resolve } from "node:path";
import type { Abortable } from "../lib/abort.ts";
import { errnoOf, messageOf } from "../lib/errors.ts";
import type { ParsedDocument } from "../lib/yaml.ts";
import { strayWords } from "./agent.ts";
import { agentOptions } from "./agent-options.ts";
import type { ConfigProblem } from "./config-problem.ts";
import { API_VERSION, type ConfigDocument, topLevelFields } from "./document.ts";
import { knownGates } from "./feature-gates.ts";
import type { ConfigInputs } from "./load.ts";
import type { OldKubelets } from "./old.ts";
import type { OptionTable } from "./option.ts";
import { type Parsed, parseOptions } from "./parse.ts";

/** The files of the host, as far as a configuration needs them. */
export interface ConfigFiles {
  /** `stamp` changes with the file's identity, size and times. */
  stat(
    path: string,
    options: Abortable,
  ): Promise<{ readonly kind: "file" | "directory" | "other"; readonly stamp?: string } | undefined>;
  list(path: string, options: Abortable): Promise<readonly string[]>;
  read(path: string, options: Abortable & { maxBytes: number }): Promise<string>;
}

export interface ReadDeps {
  readonly files: ConfigFiles;
  /** Parses with the line of each key; rejects with a coded error that may have a `line`. */
  parse(
    text: string,
    options: Abortable,
  ): Promise<{ readonly documents: readonly ParsedDocument[]; readonly warnings: readonly string[] }>;
}

const MOST_BYTES = 10 * 1024 * 1024;
/** A drop-in directory with more is a mistake, or a circle of links. */
const MOST_DROP_INS = 500;
const MOST_LEVELS = 16;
/** How often a file is read anew that somebody writes in place meanwhile: half of a YAML file is one too. */
const MOST_READS = 5;

/** Loads the table of the older kubelets; it is large and seldom needed. */
export async function oldKubelets(): Promise<OldKubelets> {
  return (await import("./legacy/index.ts")).oldKubelets;
}

/** Reads the command line; one with flags of older kubelets is read again with their table. */
export async function parseCommandLine(
  argv: readonly string[],
): Promise<{ parsed: Parsed<OptionTable>; old: OldKubelets | undefined }> {
  const parsed: Parsed<OptionTable> = parseOptions(argv, agentOptions);
  if (!parsed.problems.some((problem) => problem.startsWith("unknown flag"))) return { parsed, old: undefined };
  const old = await oldKubelets();
  return { parsed: parseOptions(argv, { ...agentOptions, ...old.flags }), old };
}

/** Reads a command line and all that it points at. */
export async function readInputs(argv: readonly string[], deps: ReadDeps, abortable: Abortable): Promise<ConfigInputs> {
  return readFiles(await parseCommandLine(argv), deps, abortable);
}

/** Reads all that a command line points at. What cannot be read is a problem in the inputs, not an error. */
export async function readFiles(
  { parsed, old }: { readonly parsed: Parsed<OptionTable>; readonly old: OldKubelets | undefined },
  deps: ReadDeps,
  { signal }: Abortable,
): Promise<ConfigInputs> {
  const problems: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  const flags = {
    values: { ...parsed.values },
    given: new Set<string>(parsed.given),
    problems: [...parsed.problems, ...strayWords(parsed.words)],
  };
  const reader = new Reader(deps, problems, { signal });
  const path = { file: text(flags.values["config"]), old: text(flags.values["initConfigDir"]) };
  let file: ConfigDocument | undefined;
  let replacesFlags = false;
  if (path.file !== "") {
    const found = await reader.configFile(path.file);
    if (found === "manifests") {
      // v1.3 meant the manifests of static pods by this flag.
      flags.given.delete("config");
      flags.values["config"] = "";
      if (!flags.given.has("staticPodPath")) flags.values["staticPodPath"] = path.file;
      flags.given.add("staticPodPath");
      const message = "names pod manifests, as in v1.3; use --pod-manifest-path for them";
      warnings.push({ field: "--config", value: "", message });
    } else file = found;
  } else if (path.old !== "") {
    file = await reader.document(join(path.old, "kubelet"));
    replacesFlags = true;
  }
  const directory = text(flags.values["configDir"]);
  const dropIns = directory === "" ? [] : await reader.dropIns(directory);
  const speaksOld =
    old !== undefined ||
    needsOld(file, flags.values["featureGates"]) ||
    dropIns.some(({ value }) => hasUnknownGate(value));
  return {
    flags,
    file,
    replacesFlags,
    dropIns,
    problems,
    warnings,
    places: [...reader.places],
    old: old ?? (speaksOld ? await oldKubelets() : undefined),
  };
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Whether a file may speak the language of an older kubelet. */
function needsOld(file: ConfigDocument | undefined, gates: unknown): boolean {
  if (unknownGate(gates)) return true;
  const value = file?.value;
  if (typeof value !== "object" || value === null) return false;
  if (!("apiVersion" in value) || value.apiVersion !== API_VERSION || hasUnknownGate(value)) return true;
  const known = topLevelFields();
  return Object.keys(value).some((name) => name !== "apiVersion" && name !== "kind" && !known.includes(name));
}

function hasUnknownGate(value: unknown): boolean {
  return typeof value === "object" && value !== null && "featureGates" in value && unknownGate(value.featureGates);
}

function unknownGate(gates: unknown): boolean {
  return typeof gates === "object" && gates !== null && Object.keys(gates).some((name) => !knownGates().has(name));
}

class Reader {
  /** Files and directories that were read. */
  readonly places = new Set<string>();

  constructor(
    private readonly deps: ReadDeps,
    private readonly problems: ConfigProblem[],
    private readonly abortable: Abortable,
  ) {}

  /** The file of `--config`; what v1.3 meant by it is recognised by its target. */
  async configFile(path: string): Promise<ConfigDocument | "manifests" | undefined> {
    if ((await this.kind(path)) === "directory") return "manifests";
    const document = await this.document(path);
    const value = document?.value;
    const isPod =
      typeof value === "object" && value !== null && "kind" in value && /^Pod(List)?$/.test(text(value.kind));
    return isPod ? "manifests" : document;
  }

  /** A file with one document, or undefined after a problem. */
  async document(path: string): Promise<ConfigDocument | undefined> {
    this.places.add(resolve(path));
    try {
      const content = await this.content(path);
      const { documents, warnings } = await this.deps.parse(content, this.abortable);
      const [first] = documents;
      if (first === undefined) return this.failed(path, "is empty");
      const more = documents[1] === undefined ? [] : [`line ${documents[1].line}: only the first document is read`];
      return {
        file: path,
        directory: dirname(resolve(path)),
        value: first.value,
        line: first.line,
        lines: first.lines,
        warnings: [...warnings, ...more],
      };
    } catch (error) {
      this.abortable.signal.throwIfAborted();
      return this.failed(path, readingProblem(error), lineOfError(error));
    }
  }

  private async content(path: string): Promise<string> {
    const { files } = this.deps;
    for (let left = MOST_READS; left > 0; left--) {
      const before = await files.stat(path, this.abortable);
      const content = await files.read(path, { ...this.abortable, maxBytes: MOST_BYTES });
      const after = await files.stat(path, this.abortable);
      if (before?.stamp === after?.stamp) return content;
    }
    throw new Error("keeps changing while it is read");
  }

  /** Every `.conf` file below the directory, in the order of their names. */
  async dropIns(directory: string): Promise<readonly ConfigDocument[]> {
    this.places.add(resolve(directory));
    const kind = await this.kind(directory);
    if (kind !== "directory") {
      this.failed(directory, kind === undefined ? "is not there" : "is no directory");
      return [];
    }
    const paths: string[] = [];
    await this.walk(directory, paths, 0);
    if (paths.length > MOST_DROP_INS) this.failed(directory, `has more than ${MOST_DROP_INS} .conf files`);
    const documents: ConfigDocument[] = [];
    for (const path of paths.slice(0, MOST_DROP_INS)) {
      const document = await this.document(path);
      if (document !== undefined) documents.push(document);
    }
    return documents;
  }

  private async walk(directory: string, paths: string[], depth: number): Promise<void> {
    if (depth > MOST_LEVELS || paths.length > MOST_DROP_INS) return;
    this.places.add(resolve(directory));
    let names: readonly string[] = [];
    try {
      names = await this.deps.files.list(directory, this.abortable);
    } catch (error) {
      this.abortable.signal.throwIfAborted();
      this.failed(directory, readingProblem(error));
    }
    for (const name of [...names].sort(byBytes)) {
      const path = join(directory, name);
      const kind = await this.kind(path);
      // `..data` of a mounted ConfigMap holds the same files that the links beside it lead to.
      if (kind === "directory" && !name.startsWith("..")) await this.walk(path, paths, depth + 1);
      else if (kind === "file" && name.endsWith(".conf")) paths.push(path);
    }
  }

  private async kind(path: string): Promise<"file" | "directory" | "other" | undefined> {
    try {
      return (await this.deps.files.stat(path, this.abortable))?.kind;
    } catch (error) {
      this.abortable.signal.throwIfAborted();
      this.failed(path, readingProblem(error));
      return "other";
    }
  }

  private failed(file: string, message: string, line?: number): undefined {
    this.problems.push({ file, line, field: "", value: "", message });
  }
}

function readingProblem(error: unknown): string {
  switch (errnoOf(error)) {
    case "ENOENT":
      return "is not there";
    case "EACCES":
      return "may not be read by this user";
    case "EISDIR":
      return "is a directory, not a file";
    case "Syntax":
      return messageOf(error).replace(/^line \d+, column \d+: /, "");
    default:
      return messageOf(error);
  }
}

function lineOfError(error: unknown): number | undefined {
  return error instanceof Error && "line" in error && typeof error.line === "number" ? error.line : undefined;
}

/** Names in the order of their bytes, as Go sorts them. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
