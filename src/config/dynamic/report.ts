import type { Chosen } from "./chooser.ts";
import type { ConfigSource } from "./source.ts";

/** Who decides from afar which configuration this node has. */
export interface Follow {
  /** Where that is written: in the Node's annotation, or its field. */
  readonly by: string;
  /** Why what is wanted there cannot be had. */
  readonly error?: string;
}

/** For `config view`, metrics and the cluster. */
export interface DynamicReport {
  readonly directory: string;
  readonly state: Chosen["state"];
  /** Undefined is the local configuration. */
  readonly assigned: ConfigSource | undefined;
  readonly active: ConfigSource | undefined;
  readonly lastKnownGood: ConfigSource | undefined;
  /** Why the assigned one is not the active one. */
  readonly error?: string;
  /** Milliseconds until it counts as good. */
  readonly trialLeftMs?: number;
  /** True while settings of the active one wait for a restart. */
  readonly waitsForRestart?: boolean;
  /** Absent while only this machine decides. */
  readonly followed?: Follow;
}
