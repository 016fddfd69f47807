import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { type Abortable, TimeLimitError, withScope } from "./abort.ts";
import type { Clock } from "./clock.ts";
import { CodedError } from "./errors.ts";
import type { ParsedDocument, ParseOutcome, ParseWishes, YamlErrorCode } from "./yaml-parse.ts";

export type { ParsedDocument } from "./yaml-parse.ts";

/** A text that is no YAML, or more than the agent reads. `line` and `column` count from 1 where they are known. */
export class YamlError extends CodedError<YamlErrorCode> {
  readonly line: number | undefined;
  readonly column: number | undefined;

  constructor(code: YamlErrorCode, message: string, place: { line?: number; column?: number } = {}) {
    super(code, place.line === undefined ? message : `line ${place.line}, column ${place.column}: ${message}`);
    this.line = place.line;
    this.column = place.column;
  }
}

export interface ParseOptions extends Abortable, ParseWishes {
  readonly clock: Clock;
  /** The program of the parsing thread; defaults to the one beside this file (`yaml-worker.cjs` in the bundle). */
  readonly worker?: string;
}

/** Over this many bytes a thread parses: 64 KB took a cold parser 200 ms. Over the second nothing does. */
const INLINE_BYTES = 32 * 1024;
const MOST_BYTES = 10 * 1024 * 1024;
/** A text that takes longer than this, in milliseconds, is not meant to be read. */
const PARSE_LIMIT_MS = 5_000;
/** Heap of the thread in MiB: 10 MiB of YAML need about 300. */
const THREAD_HEAP_MB = 512;

/**
 * Parses YAML (as Kubernetes reads it) or JSON with one or several documents. Rejects with a `YamlError`, or with the
 * signal's reason. A key set twice is a warning. A large text is parsed in a thread that is ended after 5 s.
 */
export async function parseDocuments(
  text: string,
  options: ParseOptions,
): Promise<{ documents: readonly ParsedDocument[]; warnings: readonly string[] }> {
  const bytes = Buffer.byteLength(text);
  if (bytes > MOST_BYTES)
    throw new YamlError("TooLarge", `${bytes} bytes are more than the ${MOST_BYTES} that are read`);
  const isSlow = bytes > INLINE_BYTES || looksDeep(text) || text.split("*").length > MANY_ALIASES;
  const outcome = isSlow
    ? await parseInThread(text, wishesOf(options), options)
    : await parseHere(text, wishesOf(options));
  if (outcome.ok) return { documents: outcome.documents, warnings: outcome.warnings };
  throw new YamlError(outcome.code, outcome.message, { line: outcome.line, column: outcome.column });
}

/** More than any manifest has; the parser searches all of them for each: 10,000 took 1.5 s. */
const MANY_ALIASES = 1_000;
/** Deeper than any manifest; the parser's time grows with the square of the depth. */
const DEEP = 200;

/** True for a text that may nest deeply; may err on the side of true (brackets in strings count). */
function looksDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === "[" || char === "{") depth++;
    else if (char === "]" || char === "}") depth--;
    if (depth > DEEP) return true;
  }
  return /(?:[-?:][ \t]+){200}/.test(text);
}

/** Only what a thread can be sent. */
function wishesOf({ lines = false, mostValues }: ParseWishes): ParseWishes {
  return { lines, ...(mostValues !== undefined && { mostValues }) };
}

async function parseHere(text: string, wishes: ParseWishes): Promise<ParseOutcome> {
  // Imported at first use: an agent without manifests never needs it.
  const { parseText } = await import("./yaml-parse.ts");
  return parseText(text, wishes);
}

async function parseInThread(
  text: string,
  wishes: ParseWishes,
  { signal, clock, worker = findWorker() }: ParseOptions,
): Promise<ParseOutcome> {
  // A build without the thread's program still reads large files, at the price of a pause.
  if (worker === undefined) return parseHere(text, wishes);
  try {
    return await withScope([signal], { clock, ms: PARSE_LIMIT_MS }, (limited) =>
      runThread(worker, { text, wishes }, limited),
    );
  } catch (error) {
    if (!(error instanceof TimeLimitError) || signal.aborted) throw error;
    throw new YamlError("TimeLimit", `not parsed within ${PARSE_LIMIT_MS / 1000} s`);
  }
}

async function runThread(
  program: string,
  task: { text: string; wishes: ParseWishes },
  signal: AbortSignal,
): Promise<ParseOutcome> {
  signal.throwIfAborted();
  const fromSource = program.endsWith(".ts");
  const thread = new Worker(fromSource ? loadThroughTsx(program) : program, {
    eval: fromSource,
    workerData: task,
    resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MB },
  });
  let onAbort = (): void => undefined;
  try {
    return await new Promise<ParseOutcome>((resolve, reject) => {
      onAbort = () => reject(signal.reason as Error);
      signal.addEventListener("abort", onAbort);
      // The thread posts what `parseText` returns and nothing else.
      thread.once("message", (outcome) => resolve(outcome as ParseOutcome));
      thread.once("messageerror", (error: Error) => reject(error));
      thread.on("error", (error: NodeJS.ErrnoException) => {
        const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
        reject(isMemory ? new YamlError("OutOfMemory", "needs more memory than a manifest should") : error);
      });
      thread.once("exit", (code) => reject(new YamlError("Syntax", `the parser ended with code ${code}`)));
    });
  } finally {
    signal.removeEventListener("abort", onAbort);
    await thread.terminate();
  }
}

/** From source, a thread does not inherit tsx and has to load it itself. */
function loadThroughTsx(program: string): string {
  const path = JSON.stringify(program);
  return `const load = require("node:module").createRequire(${path}); load("tsx/cjs"); load(${path});`;
}

/**
 * The thread needs a file of its own: code given as text cannot `require` out of a single-file bundle. The build
 * writes `yaml-worker.cjs` beside the bundle; from source it is the TypeScript file.
 */
function findWorker(): string | undefined {
  const here = typeof __dirname === "string" ? __dirname : dirname(fileURLToPath(import.meta.url));
  return ["yaml-worker.cjs", "yaml-worker.ts"].map((name) => join(here, name)).find((path) => existsSync(path));
}
