import { TimeLimitError } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { type ExecOptions, type ExecResult, exec } from "./exec.ts";
import { HostError, hostError } from "./host-error.ts";

/** How long a filesystem may take to answer, in milliseconds. */
const LIMIT_MS = 5000;

/** The size of a filesystem, and what is left of it for users other than root. */
export interface FilesystemStats {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

/** Runs `stat` with these arguments. */
type StatCommand = (args: readonly string[], options: ExecOptions) => Promise<ExecResult>;

/**
 * Measures filesystems of the runtime. One that hangs (a dead disk, an image store on a network filesystem) would hold a
 * thread for ever, so a child process asks. It is killed after a few seconds; as long as it does not end, because it
 * hangs in the kernel, no other one is started for the path.
 */
export class FilesystemMeter {
  private readonly running = new Map<string, Promise<FilesystemStats>>();
  /** Those that begin when the running one of the path has ended. */
  private readonly waiting = new Map<string, Promise<FilesystemStats>>();
  /** Paths whose child process has not ended. */
  private readonly held = new Set<string>();
  private readonly stat: StatCommand;

  constructor(clock: Clock, stat?: StatCommand) {
    this.stat = stat ?? ((args, options) => exec(clock, ["stat", ...args], options));
  }

  /**
   * Measures the filesystem that holds `path`. Rejects with a `HostError`, of code `Timeout` if it does not answer. What is
   * measured was never before the call: callers share only a measurement that has not begun.
   */
  measure(path: string): Promise<FilesystemStats> {
    const [waiting, running] = [this.waiting.get(path), this.running.get(path)];
    if (waiting !== undefined) return waiting;
    if (running === undefined) return this.begin(path);
    const next = running.catch(() => undefined).then(() => this.begin(path));
    this.waiting.set(path, next);
    return next;
  }

  private begin(path: string): Promise<FilesystemStats> {
    this.waiting.delete(path);
    const running = this.ask(path).finally(() => this.running.delete(path));
    this.running.set(path, running);
    return running;
  }

  private async ask(path: string): Promise<FilesystemStats> {
    const what = `measure filesystem of ${path}`;
    const failed = (code: "Timeout" | "NotFound" | "Unknown", why: string, cause?: unknown): HostError =>
      new HostError(code, `${what}: ${why}`, { cause });
    if (this.held.has(path)) throw failed("Timeout", "an earlier call still hangs");
    this.held.add(path);
    const options = { timeoutMs: LIMIT_MS, onExit: () => void this.held.delete(path) };
    // Blocks in all, those that others than root may use, and their size in bytes.
    const args = ["-f", "-c", "%b %a %S", "--", path];
    const { code, stdout, stderr } = await this.stat(args, options).catch((error: unknown) => {
      if (error instanceof TimeLimitError) throw failed("Timeout", `no answer within ${LIMIT_MS / 1000} s`, error);
      this.held.delete(path);
      throw hostError(what, error);
    });
    const [blocks = 0, available = 0, size = 0] = stdout.trim().split(" ").map(Number);
    if (code !== 0 || !Number.isFinite(blocks + available) || !(size > 0)) {
      const isMissing = /No such file or directory|Not a directory/.test(stderr);
      throw failed(isMissing ? "NotFound" : "Unknown", stderr.trim() || `stat exited with code ${code}`);
    }
    return { capacityBytes: blocks * size, availableBytes: available * size };
  }
}
