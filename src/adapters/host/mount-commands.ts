import { type Abortable, TimeLimitError } from "../../lib/abort.ts";
import type { ExecOptions, ExecResult } from "./exec.ts";
import { HostError } from "./host-error.ts";

/** A filesystem of a server, of a disk or of another directory, and where it is wanted. */
export interface CommandMount {
  /** `server:/export`, `/dev/sdb`, a directory for a bind mount. */
  readonly source: string;
  readonly target: string;
  /** Empty for a bind mount, and where mount(8) is to find it out. */
  readonly type: string;
  readonly options: readonly string[];
}

export interface MountCommandDeps {
  run(command: readonly [string, ...string[]], options: ExecOptions): Promise<ExecResult>;
  /** How many mounts are at exactly this path, by the kernel's table alone. */
  layersAt(path: string): number;
  /** True if the filesystem that is mounted at this path is mounted somewhere else, too. */
  isElsewhere(path: string): boolean;
  /** Flags of the mount at this path that a remount has to give again, or they are cleared. */
  flagsAt(path: string): readonly string[];
}

/** A mount that takes this long, in milliseconds, is given up and tried anew. */
const MOUNT_MS = 120_000;
/** As in Kubernetes: after this long, in milliseconds, an unmount is forced where that is allowed. */
const UNMOUNT_MS = 60_000;
/** What must not depend on a server any more, in milliseconds. */
const FORCED_MS = 10_000;
/** Mounts on top of each other; more are not ours. */
const MOST_LAYERS = 8;

/**
 * Mounts and unmounts what may hang (a server that is gone, a dead disk): in child processes that are killed at their
 * time limits and not waited for. Whether something is mounted is decided by the kernel's table, never by the path.
 */
export class MountCommands {
  constructor(private readonly deps: MountCommandDeps) {}

  /** Rejects with the words of Kubernetes if mount(8) fails. */
  async mount({ source, target, type, options }: CommandMount, { signal }: Abortable): Promise<void> {
    if (source.startsWith("-")) throw new HostError("InvalidArgument", `mount: ${JSON.stringify(source)} is no source`);
    const flags = [...(type === "" ? [] : ["-t", type]), ...(options.length === 0 ? [] : ["-o", options.join(",")])];
    const shown = [...flags, source, target].join(" ");
    const failed = (why: string, output: string): string =>
      `mount failed: ${why}\nMounting command: mount\nMounting arguments: ${shown}\nOutput: ${output}`;
    const { code, stdout, stderr } = await this.within(
      ["mount", ...flags, "--", source, target],
      { signal, timeoutMs: MOUNT_MS },
      (seconds) => failed(`no answer within ${seconds} s`, ""),
    );
    if (code !== 0) throw new HostError("Unknown", failed(exitStatus(code), `${stderr}${stdout}`.trim()));
  }

  /** Binds a directory. `ro` and other flags are set by a remount: the kernel ignores them on a new bind mount. */
  async bind({ source, target, options }: Omit<CommandMount, "type">, { signal }: Abortable): Promise<void> {
    await this.mount({ source, target, type: "", options: ["bind"] }, { signal });
    if (options.length === 0) return;
    try {
      const kept = this.deps.flagsAt(target).filter((flag) => !options.includes(flag));
      const all = ["bind", "remount", ...options, ...kept];
      await this.mount({ source, target, type: "", options: all }, { signal });
    } catch (error) {
      // Half a mount is worse than none: it would be writable.
      await this.unmount(target, { signal }).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Unmounts all that is at a path. With `mayForce` an unmount that hangs is forced, and if that does not help the mount is
   * detached: only for filesystems of which nothing is lost or used twice by that.
   */
  async unmount(target: string, { signal, mayForce = false }: Abortable & { mayForce?: boolean }): Promise<void> {
    for (let layer = 0; layer < MOST_LAYERS && this.deps.layersAt(target) > 0; layer++) {
      await this.unmountTop(target, { signal, mayForce });
    }
  }

  /**
   * Unmounts by force what a server does not answer for. Whatever waits for the server fails then, also where the mount
   * stays because it is in use, which is no failure.
   */
  async force(target: string, { signal }: Abortable): Promise<void> {
    const late = (seconds: number): string => `unmount ${target}: no answer within ${seconds} s`;
    await this.within(["umount", "-f", "--", target], { signal, timeoutMs: FORCED_MS }, late);
  }

  private async unmountTop(target: string, { signal, mayForce }: Abortable & { mayForce: boolean }): Promise<void> {
    const before = this.deps.layersAt(target);
    const plain = { flags: [] as readonly string[], timeoutMs: UNMOUNT_MS };
    const detached = { flags: ["-l"], timeoutMs: FORCED_MS };
    // Force ends what others have under way with the same server, in all mounts of the filesystem.
    const forced = this.deps.isElsewhere(target) ? [] : [{ flags: ["-f"], timeoutMs: FORCED_MS }];
    let failure: unknown;
    for (const { flags, timeoutMs } of mayForce ? [plain, ...forced, detached] : [plain]) {
      const late = (seconds: number): string => `unmount ${target}: no answer within ${seconds} s`;
      try {
        const { code, stderr } = await this.within(["umount", ...flags, "--", target], { signal, timeoutMs }, late);
        failure =
          code === 0 ? undefined : new HostError("Busy", `unmount ${target}: ${stderr.trim() || exitStatus(code)}`);
      } catch (error) {
        if (signal.aborted) throw error;
        failure = error;
      }
      // The kernel takes a mount away first and writes back what is left of its data then. A server gets it whenever it
      // can; a disk must not be taken away meanwhile.
      const isGone = this.deps.layersAt(target) < before;
      if (isGone && (mayForce || failure === undefined)) return;
      if (isGone) throw new HostError("Busy", `unmount ${target}: what is left of its data is still written back`);
      // Only one that hangs is forced: one that is in use by somebody is tried again later.
      if (flags.length === 0 && !(failure instanceof HostError && failure.code === "Timeout")) break;
    }
    throw failure ?? new HostError("Busy", `unmount ${target}: still mounted`);
  }

  private async within(
    command: readonly [string, ...string[]],
    options: Abortable & { timeoutMs: number },
    late: (seconds: number) => string,
  ): Promise<ExecResult> {
    try {
      return await this.deps.run(command, { ...options, isContained: true, mayLeaveChildren: true });
    } catch (error) {
      if (options.signal.aborted || !(error instanceof TimeLimitError)) throw error;
      throw new HostError("Timeout", late(options.timeoutMs / 1000), { cause: error });
    }
  }
}

/** As Go shows how a command ended. */
export function exitStatus(code: number | undefined): string {
  return code === undefined ? "signal: killed" : `exit status ${code}`;
}
