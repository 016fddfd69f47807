import type { Clock } from "../../lib/clock.ts";
import type { OpenLog, RotationFiles } from "./rotate.ts";

/** A log that is measured at least this often within the interval is kept open: opening it costs as much as three looks. */
const OFTEN = 8;

export interface LogSizeDeps {
  readonly files: Pick<RotationFiles, "size" | "open">;
  readonly clock: Clock;
  intervalMs(): number;
}

/**
 * Measures one log. By its path that takes a thread, which costs more than everything else of a check; a log that is
 * measured often is kept open, and measured by its descriptor. Who else renamed it is noticed after the interval.
 */
export class LogSize {
  private log: OpenLog | undefined;
  private openedAt = 0;
  private isClosed = false;
  /** It was kept open until now, so the next read opens it anew instead of reading by the path first. */
  private reopens = false;

  constructor(
    private readonly path: string,
    private readonly deps: LogSizeDeps,
  ) {}

  /**
   * Bytes of a log that is kept open, at once; undefined if it has to be read by its path, as when its disk fails: then the
   * error is reported like any other of a rotation. Never throws.
   */
  readOpen(): number | undefined {
    const { clock, intervalMs } = this.deps;
    const isRecent = this.log !== undefined && clock.now().mono - this.openedAt < intervalMs();
    try {
      return isRecent ? this.log?.size() : undefined;
    } catch {
      return undefined;
    }
  }

  /** Bytes; undefined if nothing is at the path. */
  async read(): Promise<number | undefined> {
    const size = this.readOpen();
    if (size !== undefined) return size;
    if (this.log !== undefined) this.reopen();
    if (this.reopens) await this.open();
    return this.log?.size() ?? this.deps.files.size(this.path);
  }

  /** The next read follows after so many milliseconds. */
  async expect(delayMs: number): Promise<void> {
    if (this.log === undefined && delayMs * OFTEN <= this.deps.intervalMs()) await this.open();
  }

  /** The log is rotated: the next read is of the file that is at the path then. */
  reopen(): void {
    const wasOpen = this.log !== undefined;
    this.release();
    this.reopens = wasOpen;
  }

  /** The log is not read for a while. */
  release(): void {
    this.reopens = false;
    this.log?.close();
    this.log = undefined;
  }

  close(): void {
    this.isClosed = true;
    this.release();
  }

  private async open(): Promise<void> {
    this.reopens = false;
    const openedAt = this.deps.clock.now().mono;
    const log = await this.deps.files.open(this.path);
    if (this.isClosed) return log?.close();
    this.log = log;
    this.openedAt = openedAt;
  }
}
