/** The words under which `--help` groups options. */
export type Topic =
  | "Pod sources"
  | "Container runtime"
  | "Images"
  | "Node"
  | "Directories"
  | "Network and DNS"
  | "Ports"
  | "Logging"
  | "General";

/** How the words of a flag become a value, and how a value is shown in help. */
export interface OptionKind<T> {
  /** What `--help` shows after the flag; empty for flags that take no value. */
  readonly placeholder: string;
  /** The value of the flag when it is given without one; absent when a value is required. */
  readonly bare?: string;
  /** Throws an `Error` with what is wrong. `before` is the value of earlier occurrences of the same flag. */
  parse(text: string, before: T | undefined): T;
  show(value: T): string;
}

/** One setting: the single place that knows its flag, type, default, help and rule. */
export interface Option<T> {
  /** Without the dashes; undefined for a field that only a configuration file sets. */
  readonly flag: string | undefined;
  /** One letter, given as `-x`. */
  readonly short?: string;
  readonly kind: OptionKind<T>;
  readonly default: T;
  readonly topic: Topic;
  readonly help: string;
  /** True when a change takes effect without a restart: its users hold it as `Live<T>`. */
  readonly live: boolean;
  /** True when its value must not appear in messages or logs. */
  readonly secret?: boolean;
  /** What is wrong with this value, or undefined. Takes parsed values only. */
  validate?(value: T): string | undefined;
}

/** Options by field name. */
export type OptionTable = Readonly<Record<string, Option<unknown>>>;

/** The typed values of a table. */
export type Values<Table extends OptionTable> = {
  readonly [Name in keyof Table]: Table[Name] extends Option<infer T> ? T : never;
};

/** Fills what nearly every option leaves out. */
export function option<T>(
  kind: OptionKind<T>,
  entry: NoInfer<Omit<Option<T>, "kind" | "live"> & { readonly live?: boolean }>,
): Option<T> {
  return { live: false, ...entry, kind };
}
