import { type Abortable, withScope } from "../../lib/abort.ts";
import { KeyedBackoff } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import type { FilesystemSpace } from "../../model/usage.ts";
import { type ExecOptions, type ExecResult, exec } from "./exec.ts";

/** How long somebody waits for an answer, and how long a child process does, in milliseconds. */
const READ_MS = 500;
const CHILD_MS = 10_000;
/** Between two questions to a filesystem that does not answer, in milliseconds: what is killed may hang on in the kernel. */
const BACKOFF = { initialMs: 15_000, maxMs: 600_000 };
/** Filesystems that did not answer are remembered this long after their back-off, in milliseconds. */
const KEPT_MS = 600_000;

type Run = (command: readonly [string, ...string[]], options: ExecOptions) => Promise<ExecResult>;

/** Space of filesystems of servers, and of disks that may be gone: asked by child processes, one at a time for a path. */
export class RemoteSpaceReader {
  private readonly pending = new Map<string, Promise<FilesystemSpace | undefined>>();
  private readonly backoff = new KeyedBackoff<string>(BACKOFF);

  constructor(
    private readonly clock: Clock,
    private readonly run: Run = (command, options) => exec(clock, command, options),
  ) {}

  /** Undefined if it does not answer in half a second; an answer that comes later counts for the next one who asks. */
  async read(path: string, { signal }: Abortable): Promise<FilesystemSpace | undefined> {
    const asked = this.pending.get(path) ?? this.ask(path);
    if (asked === undefined) return undefined;
    try {
      return await withScope([signal], { clock: this.clock, ms: READ_MS }, (inner) => orAborted(asked, inner));
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  private ask(path: string): Promise<FilesystemSpace | undefined> | undefined {
    const now = this.clock.now();
    this.backoff.evictOlderThan(KEPT_MS, now);
    if (this.backoff.remaining(path, now) > 0) return undefined;
    const asked = this.statfs(path).finally(() => this.pending.delete(path));
    this.pending.set(path, asked);
    return asked;
  }

  /** Never rejects. */
  private async statfs(path: string): Promise<FilesystemSpace | undefined> {
    // Blocks: all, free, free for others than root; their size; inodes: all, free.
    const command = ["stat", "--file-system", "--format=%b %f %a %S %c %d", "--", path] as const;
    try {
      const { code, stdout } = await this.run(command, { timeoutMs: CHILD_MS });
      const space = code === 0 ? parse(stdout) : undefined;
      if (space === undefined) this.backoff.next(path, this.clock.now());
      else this.backoff.reset(path);
      return space;
    } catch {
      this.backoff.next(path, this.clock.now());
      return undefined;
    }
  }
}

function parse(text: string): FilesystemSpace | undefined {
  const numbers = text.trim().split(" ").map(Number);
  const [blocks = 0, free = 0, available = 0, size = 0, inodes = 0, inodesFree = 0] = numbers;
  if (numbers.length !== 6 || numbers.some((one) => !Number.isFinite(one))) return undefined;
  return {
    device: 0,
    capacityBytes: blocks * size,
    availableBytes: available * size,
    usedBytes: (blocks - free) * size,
    inodes,
    inodesFree,
  };
}
