import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { type DeviceCheckpoint, decodeCheckpoint, encodeInParts } from "./checkpoint.ts";

/** Where the checkpoint is kept; `PluginDirectory` provides it. */
export interface CheckpointFile {
  readCheckpoint(): string | undefined;
  writeCheckpoint(text: string): Promise<void>;
  setAside(): string;
}

interface StoreDeps {
  readonly file: CheckpointFile;
  readonly log: Pick<Logger, "warn">;
  readonly clock: Pick<Clock, "sleep">;
  /** What is allocated now. */
  state(): DeviceCheckpoint;
  /** The checkpoint of an earlier run could be read at last. */
  found(checkpoint: DeviceCheckpoint): void;
}

/** Keeps what is allocated on disk. Writes never overlap, and those that are asked for during one become one. */
export class CheckpointStore {
  private writing: Promise<void> | undefined;
  private next: Promise<void> | undefined;
  private written = "";
  /** Why the checkpoint of an earlier run cannot be read: it is not overwritten. */
  private unread: string | undefined;
  private isMissing = false;

  constructor(private readonly deps: StoreDeps) {}

  /**
   * The checkpoint of an earlier run; undefined if there is none, or none that makes sense: that is moved aside. If it
   * cannot be read at all, nothing is saved until it can: what others have is not known.
   */
  load(): DeviceCheckpoint | undefined {
    const { file, log } = this.deps;
    this.unread = undefined;
    let text: string | undefined;
    try {
      text = file.readCheckpoint();
      this.isMissing = text === undefined;
    } catch (error) {
      this.unread = messageOf(error);
      log.warn("Failed to read device checkpoint", { error: this.unread });
      return undefined;
    }
    try {
      return text === undefined ? undefined : decodeCheckpoint(text);
    } catch (error) {
      log.warn("Device checkpoint is damaged", { error: messageOf(error) });
    }
    try {
      log.warn("Moved damaged device checkpoint aside", { path: file.setAside() });
    } catch (error) {
      log.warn("Failed to move damaged device checkpoint aside", { error: messageOf(error) });
    }
    return undefined;
  }

  /** True if there was no checkpoint at all, not even a damaged one. */
  get wasMissing(): boolean {
    return this.isMissing;
  }

  /** Throws while the checkpoint of an earlier run cannot be read: who has which devices is not known. */
  ready(): void {
    if (this.unread === undefined) return;
    const found = this.load();
    if (this.unread !== undefined) throw new Error(`device checkpoint is unreadable: ${this.unread}`);
    if (found !== undefined) this.deps.found(found);
  }

  /** Resolves when what is allocated now is on disk; rejects if it cannot be written. */
  save(): Promise<void> {
    if (this.writing === undefined) {
      this.writing = this.write().finally(() => {
        this.writing = undefined;
      });
      return this.writing;
    }
    const again = (): Promise<void> => {
      this.next = undefined;
      return this.save();
    };
    this.next ??= this.writing.then(again, again);
    return this.next;
  }

  /** Writes without being waited for; a failure is logged. */
  saveLater(): void {
    this.save().catch((error: unknown) => {
      this.deps.log.warn("Failed to write device checkpoint", { error: messageOf(error) });
    });
  }

  private async write(): Promise<void> {
    this.ready();
    const text = await this.encode();
    if (text === this.written) return;
    await this.deps.file.writeCheckpoint(text);
    this.written = text;
  }

  private async encode(): Promise<string> {
    const parts = encodeInParts(this.deps.state());
    for (;;) {
      const { done, value } = parts.next();
      if (done === true) return value;
      await this.deps.clock.sleep(0);
    }
  }
}
