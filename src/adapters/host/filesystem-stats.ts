import { statfs } from "node:fs/promises";
import { TimeLimitError, withScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import { HostError, hostError } from "./host-error.ts";

/** How long a filesystem may take to answer, in milliseconds. */
const LIMIT_MS = 5000;

/** The size of a filesystem, and what is left of it for users other than root. */
export interface FilesystemStats {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

/**
 * Measures filesystems of the runtime. One that hangs (a dead disk, an image store on a network filesystem) is waited for
 * a few seconds, and not asked again until it answers, so that it holds one thread and no more.
 */
export class FilesystemMeter {
  private readonly pending = new Map<string, Promise<FilesystemStats>>();

  constructor(
    private readonly clock: Clock,
    private readonly call: (path: string) => Promise<FilesystemStats> = measure,
  ) {}

  /** Measures the filesystem that holds `path`. Rejects with a `HostError`, of code `Timeout` if it does not answer. */
  async measure(path: string): Promise<FilesystemStats> {
    const what = `measure filesystem of ${path}`;
    const running = this.pending.get(path) ?? this.begin(path);
    try {
      return await withScope([], { clock: this.clock, ms: LIMIT_MS }, (signal) => orAborted(running, signal));
    } catch (error) {
      if (!(error instanceof TimeLimitError)) throw hostError(what, error);
      throw new HostError("Timeout", `${what}: no answer within ${LIMIT_MS / 1000} s`, { cause: error });
    }
  }

  private begin(path: string): Promise<FilesystemStats> {
    const running = this.call(path).finally(() => this.pending.delete(path));
    this.pending.set(path, running);
    // It may fail when nobody waits any more.
    running.catch(() => undefined);
    return running;
  }
}

async function measure(path: string): Promise<FilesystemStats> {
  const { blocks, bavail, bsize } = await statfs(path);
  return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize };
}
