import { clip } from "./bounded-text.ts";
import { callerFile } from "./caller.ts";
import type { Clock, Instant } from "./clock.ts";
import { messageOf } from "./errors.ts";
import type { Live } from "./live.ts";

/** Fields of a log line; a secret never goes in here. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A structured logger: a constant message and fields. `info` is level 0; `debug(n, …)` shows at `-v n` and above. */
export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, error: unknown, fields?: LogFields): void;
  debug(level: number, message: string, fields?: LogFields): void;
  /** The same logger with fields added to each line. */
  with(fields: LogFields): Logger;
}

/** A logger that discards everything, for tests. */
export const silent: Logger = {
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  debug: () => undefined,
  with: () => silent,
};

/** Where finished lines go; `LineSink` of `output.ts` in the agent, an array in tests. Must not block or throw. */
export interface LogSink {
  write(text: string): void;
}

/** The verbosity of single files: `*` and `?` in the pattern match any letters; the name has no directory and no extension. */
export interface ModuleLevel {
  readonly filePattern: string;
  readonly verbosity: number;
}

/** The verbosity, overall and for single files. */
export interface LogLevels {
  /** Lines of `debug(n, …)` show while this is at least n. */
  readonly verbosity: Live<number>;
  /** Files with a verbosity of their own; the first matching pattern wins. */
  readonly modules?: Live<readonly ModuleLevel[]>;
}

export interface LoggerOptions extends LogLevels {
  readonly sink: LogSink;
  /** Receives the lines that are not errors; defaults to `sink`. */
  readonly infoSink?: LogSink;
  readonly clock: Clock;
  readonly format: "text" | "json";
  /** Stands where klog has the source file; the agent's name by default. */
  readonly component?: string;
}

/** A logger that writes one line a call, as klog text or as JSON. */
export function createLogger(options: LoggerOptions): Logger {
  const render = options.format === "json" ? renderJson : renderText;
  return new LineLogger((entry) => {
    const component = options.component ?? "kubelet";
    const sink = entry.severity === "error" ? options.sink : (options.infoSink ?? options.sink);
    sink.write(render({ ...entry, at: options.clock.now(), component }));
  }, options);
}

/** True if a name matches a pattern of `--vmodule`. */
export function fitsModule(name: string, pattern: string): boolean {
  const parts = pattern.split(/([*?])/).map((part) => {
    if (part === "*") return ".*";
    return part === "?" ? "." : part.replace(/[.+^${}()|[\]\\]/g, "\\$&");
  });
  return new RegExp(`^${parts.join("")}$`).test(name);
}

type Severity = "info" | "warning" | "error";

interface Entry {
  readonly severity: Severity;
  readonly level: number;
  readonly message: string;
  /** In the order in which they are shown; a later one of the same name wins. */
  readonly fields: LogFields;
  readonly error?: unknown;
}

interface StampedEntry extends Entry {
  readonly at: Instant;
  readonly component: string;
}

class LineLogger implements Logger {
  constructor(
    private readonly emit: (entry: Entry) => void,
    private readonly levels: LogLevels,
    private readonly bound: LogFields = {},
  ) {}

  info(message: string, fields?: LogFields): void {
    this.emit({ severity: "info", level: 0, message, fields: this.merge(fields) });
  }

  warn(message: string, fields?: LogFields): void {
    this.emit({ severity: "warning", level: 0, message, fields: this.merge(fields) });
  }

  error(message: string, error: unknown, fields?: LogFields): void {
    this.emit({ severity: "error", level: 0, message, error: error ?? null, fields: this.merge(fields) });
  }

  debug(level: number, message: string, fields?: LogFields): void {
    if (this.limit() < level) return;
    this.emit({ severity: "info", level, message, fields: this.merge(fields) });
  }

  with(fields: LogFields): Logger {
    return new LineLogger(this.emit, this.levels, { ...this.bound, ...fields });
  }

  /** Returns the verbosity for the caller of `debug`; the file is looked up only if `modules` names any. */
  private limit(): number {
    const { verbosity, modules } = this.levels;
    if (modules === undefined || modules.current.length === 0) return verbosity.current;
    const file = callerFile(LineLogger.prototype.debug);
    return modules.current.find(({ filePattern }) => fitsModule(file, filePattern))?.verbosity ?? verbosity.current;
  }

  private merge(fields: LogFields | undefined): LogFields {
    return fields === undefined ? this.bound : { ...this.bound, ...fields };
  }
}

const LETTERS: Readonly<Record<Severity, string>> = { info: "I", warning: "W", error: "E" };

/** klog's layout: `I1115 21:10:20.123456    4711 kubelet] "message" key="value"`, in local time. */
function renderText(entry: StampedEntry): string {
  const date = new Date(entry.at.wall);
  const micros = Math.floor((entry.at.wall - Math.floor(entry.at.wall / 1000) * 1000) * 1000);
  const day = `${pad(date.getMonth() + 1, 2)}${pad(date.getDate(), 2)}`;
  const time = `${pad(date.getHours(), 2)}:${pad(date.getMinutes(), 2)}:${pad(date.getSeconds(), 2)}.${pad(micros, 6)}`;
  const head = `${LETTERS[entry.severity]}${day} ${time} ${String(process.pid).padStart(7)} ${entry.component}]`;
  let line = `${head} ${quote(entry.message)}`;
  if (entry.error !== undefined) line += ` err=${quote(describe(entry.error))}`;
  for (const key in entry.fields) {
    const value = entry.fields[key];
    if (value !== undefined) line += ` ${key}=${textOf(value)}`;
  }
  return `${line}\n`;
}

/** Kubernetes' JSON layout: `ts` in milliseconds; `v` only on lines that have a verbosity; `err` only on errors. */
function renderJson(entry: StampedEntry): string {
  const line: Record<string, unknown> = { ts: entry.at.wall };
  if (entry.severity === "info") line.v = entry.level;
  else if (entry.severity === "warning") line.severity = "warning";
  line.logger = entry.component;
  line.msg = entry.message;
  if (entry.error !== undefined) line.err = clip(describe(entry.error), VALUE_BYTES);
  for (const key in entry.fields) {
    // A field must not replace a key of the line itself.
    if (entry.fields[key] !== undefined) line[key in line ? `${key}_` : key] = bounded(entry.fields[key]);
  }
  return `${safeJson(line)}\n`;
}

/** What one text of a line may take, in bytes. */
const VALUE_BYTES = 8192;

function bounded(value: unknown): unknown {
  return typeof value === "string" ? clip(value, VALUE_BYTES) : value;
}

function textOf(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (value === null) return "null";
  if (typeof value === "string") return quote(value);
  if (value instanceof Error) return quote(describe(value));
  if (value instanceof Date) return quote(Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString());
  // JSON leaves some control characters as they are; a string from outside must not move the cursor.
  return escapeControls(safeJson(value));
}

/** The message with the messages of its causes: the foreign error is often the one that helps. */
function describe(error: unknown): string {
  let text = messageOf(error);
  let cause = error instanceof Error ? error.cause : undefined;
  for (let depth = 0; cause !== undefined && cause !== null && depth < 4; depth++) {
    const more = messageOf(cause);
    if (!text.includes(more)) text += `: ${more}`;
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return text;
}

function quote(text: string): string {
  return escapeControls(JSON.stringify(clip(text, VALUE_BYTES)));
}

// What JSON does not escape but a terminal obeys: DEL, C1 controls, line separators and direction overrides.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNSAFE = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

function escapeControls(text: string): string {
  return text.replace(UNSAFE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** JSON of anything: errors by their message, bigint as text, a cycle or a throwing getter as a word. Never throws. */
function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value, plain) ?? "null";
  } catch {
    return typeof value === "object" && value !== null ? safeJson(shallow(value)) : '"[unprintable]"';
  }
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Error) return describe(value);
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Set) return [...value];
  return value;
}

/** The same object with each value that cannot be printed replaced by a word. */
function shallow(value: object): Record<string, string> {
  const result: Record<string, string> = {};
  for (const key of Object.keys(value)) {
    try {
      // `Reflect.get` may run a getter that throws, as the first attempt may have.
      const text = JSON.stringify(Reflect.get(value, key), plain);
      if (text !== undefined) result[key] = text;
    } catch {
      result[key] = "[unprintable]";
    }
  }
  return result;
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, "0");
}
