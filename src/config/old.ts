import type { OptionName } from "./agent-options.ts";
import type { OldGate } from "./feature-gates.ts";
import type { OptionTable } from "./option.ts";

/** What an old setting comes to: values of today's options, a warning, or a reason to refuse it. */
export interface OldOutcome {
  readonly sets?: readonly {
    readonly option: OptionName;
    readonly value: unknown;
    /** Adds keys that the map does not have yet, instead of replacing it. */
    readonly fills?: boolean;
  }[];
  readonly warning?: string;
  readonly problem?: string;
}

/** The older kubelets, loaded only when a command line or a file speaks their language. */
export interface OldKubelets {
  /** The flags of v1.3 to v1.35 that are no flags any more, by names that begin with `old:`. */
  readonly flags: OptionTable;
  /** The outcome of such a flag. */
  flag(name: string, value: unknown): OldOutcome;
  /** The outcome of a field that is no field any more, from the value in the file; undefined when it never was one. */
  field(name: string, raw: unknown): OldOutcome | undefined;
  /** The apiVersions of old files. */
  readonly versions: readonly string[];
  /** Defaults of v1.9 that today's differ from. */
  readonly defaults: ReadonlyMap<OptionName, unknown>;
  readonly gate: OldGate;
}
