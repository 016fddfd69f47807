import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { type DeviceCheckpoint, decodeCheckpoint, encodeCheckpoint } from "./checkpoint.ts";

/** Where the checkpoint is kept; `PluginDirectory` provides it. */
export interface CheckpointFile {
  readCheckpoint(): string | undefined;
  writeCheckpoint(text: string): Promise<void>;
  setAside(): string;
}

/** Keeps what is allocated on disk. Writes never overlap, and those that are asked for during one become one. */
export class CheckpointStore {
  private writing: Promise<void> | undefined;
  private next: Promise<void> | undefined;
  private written = "";

  constructor(
    private readonly deps: { readonly file: CheckpointFile; readonly log: Pick<Logger, "warn"> },
    /** What is allocated now. */
    private readonly state: () => DeviceCheckpoint,
  ) {}

  /** The checkpoint of an earlier run; undefined if there is none, or none that can be read: that is moved aside. */
  load(): DeviceCheckpoint | undefined {
    const { file, log } = this.deps;
    let text: string | undefined;
    try {
      text = file.readCheckpoint();
      return text === undefined ? undefined : decodeCheckpoint(text);
    } catch (error) {
      log.warn("Failed to read device checkpoint", { error: messageOf(error) });
    }
    try {
      if (text !== undefined) log.warn("Moved damaged device checkpoint aside", { path: file.setAside() });
    } catch (error) {
      log.warn("Failed to move damaged device checkpoint aside", { error: messageOf(error) });
    }
    return undefined;
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
    const text = encodeCheckpoint(this.state());
    if (text === this.written) return;
    await this.deps.file.writeCheckpoint(text);
    this.written = text;
  }
}
