/** The words under which `--help` and the documentation group options, in their order. */
export const TOPICS = [
  "Pod sources",
  "Configuration",
  "Container runtime",
  "Images",
  "Node",
  "API server",
  "Local API",
  "Resources",
  "CPU, memory and topology",
  "Eviction",
  "Node shutdown",
  "Garbage collection",
  "Container logs",
  "Directories",
  "Network and DNS",
  "Ports",
  "TLS and authentication",
  "Security",
  "Logging",
  "Statistics and tracing",
  "General",
] as const;
export type Topic = (typeof TOPICS)[number];

/**
 * When a change takes effect. `live`: at once, in place. `new pods`: at once, for what is started from then on.
 * `reload`: live, but it can evict or reject pods, so a watched file alone does not apply it (SIGHUP does).
 * `restart`: with the next start of the agent.
 */
export type Applies = "live" | "new pods" | "reload" | "restart";

/** Takes what is wrong inside a value from a file; `path` leads from the option to the place, `[]` for itself. */
export interface DecodeReport {
  problem(path: readonly (string | number)[], value: unknown, message: string): void;
  /** A key that no one knows: a warning only. */
  unknownKey(path: readonly (string | number)[], known: readonly string[]): void;
}

/** How the words of a flag and the values of a file become a value, and how it is written again. */
export interface OptionKind<T> {
  /** What `--help` shows after the flag; empty for flags that take no value. */
  readonly placeholder: string;
  /** The type's name in the documentation. */
  readonly type: string;
  /** The value of the flag when it is given without one; absent when a value is required. */
  readonly bare?: string;
  /** True for objects that a drop-in merges key by key instead of replacing. */
  readonly merges?: boolean;
  /** Throws an `Error` with what is wrong. `before` is the value of earlier occurrences of the same flag. */
  parse(text: string, before: T | undefined): T;
  /** A JSON value of a configuration file, never null; undefined after it reported a problem. */
  decode(value: unknown, report: DecodeReport): T | undefined;
  /** The JSON value for a configuration file; undefined to leave it out. */
  encode(value: T): unknown;
  /** In one line, for help and messages. */
  show(value: T): string;
}

/** One setting: the single place that knows its flag, type, default, help and rule. */
export interface Option<T> {
  /** Without the dashes; undefined for a field that only a configuration file sets. */
  readonly flag: string | undefined;
  /** One letter, given as `-x`. */
  readonly short?: string;
  /** Path in KubeletConfiguration, `authentication.webhook.enabled`; undefined for what only a flag sets. */
  readonly field?: string;
  readonly kind: OptionKind<T>;
  readonly default: T;
  /** The default without a `--config` file, where it differs. */
  readonly legacyDefault?: T;
  /** In a file a zero (0, "", 0s) is a value; otherwise it means the default, as in Kubernetes. */
  readonly nullable?: boolean;
  /** A path that, in the `--config` file, is relative to that file. */
  readonly isPath?: boolean;
  readonly topic: Topic;
  readonly help: string;
  readonly applies: Applies;
  /** The Kubernetes release that had the field first; absent for what only this agent has. */
  readonly since?: string;
  /** Set for a deprecated flag: what to use instead, for the notice. */
  readonly deprecated?: string | undefined;
  /** Left out of `--help`, unless deprecated. */
  readonly hidden?: boolean;
  /** Absent: acted on. `planned`: accepted, a later version acts on it. `none`: accepted, means nothing any more. */
  readonly effect?: "planned" | "none";
  /** True when its value must not appear in messages or logs. */
  readonly secret?: boolean;
  /** What is wrong with this value, or undefined. Takes parsed values only. */
  validate?(value: T): string | undefined;
}

/** Options by name. */
export type OptionTable = Readonly<Record<string, Option<unknown>>>;

/** The typed values of a table. */
export type Values<Table extends OptionTable> = {
  readonly [Name in keyof Table]: Table[Name] extends Option<infer T> ? T : never;
};

/** Fills what nearly every option leaves out. */
export function option<T>(
  kind: OptionKind<T>,
  entry: NoInfer<Omit<Option<T>, "kind" | "applies"> & { readonly applies?: Applies }>,
): Option<T> {
  return { applies: "restart", ...entry, kind };
}
