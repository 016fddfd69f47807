import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";

/** Reads and replaces state files. */
export interface StateFiles {
  /** Undefined if there is no such file. */
  read(path: string): string | undefined;
  /** Atomic, and synced to the disk. */
  replace(path: string, text: string): Promise<void>;
}

/** Persists a state that changes: one write at a time, and each has the newest state. */
export class StateWriter {
  private running: Promise<void> | undefined;
  private next: Promise<void> | undefined;

  constructor(
    private readonly deps: { readonly files: Pick<StateFiles, "replace">; readonly log: Pick<Logger, "warn"> },
    private readonly state: { readonly path: string; text(): string },
  ) {}

  /** Resolves when the state of now is on the disk. */
  save(): Promise<void> {
    if (this.running === undefined) return this.write();
    this.next ??= this.running
      .catch(() => undefined)
      .then(() => {
        this.next = undefined;
        // Whoever waited for the write before may have begun another one by now.
        return this.save();
      });
    return this.next;
  }

  /** Saves without anybody waiting for it; a failure is logged. The next save writes the whole state again. */
  saveLater(): void {
    this.save().catch((error: unknown) => {
      this.deps.log.warn("Failed to persist state", { path: this.state.path, error: messageOf(error) });
    });
  }

  private write(): Promise<void> {
    const { path } = this.state;
    const write = this.deps.files.replace(path, this.state.text()).finally(() => {
      if (this.running === write) this.running = undefined;
    });
    this.running = write;
    return write;
  }
}
