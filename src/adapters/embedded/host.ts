import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";

/** What a finished command left. */
export interface CommandResult {
  /** Exit code; undefined when a signal or the time limit ended it. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** What the embedded runtime needs of the machine; `LinuxHost` provides it. */
export interface EmbeddedHost {
  /** Runs a command to its end; a non-zero exit is an answer, not an error. */
  exec(
    command: string,
    args: readonly string[],
    options: Partial<Abortable> & { timeoutMs?: number },
  ): Promise<CommandResult>;
  mountTable(): readonly MountPoint[];
  /** Removes a directory and what is in it, never crossing into a mount. */
  removeTree(path: string): Promise<void>;
}

export interface MountPoint {
  readonly target: string;
  readonly type: string;
}

export interface EmbeddedDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly host: EmbeddedHost;
}
