import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";

/** Storage of pod records: one small file a pod in the root directory. */
export interface RecordFiles {
  /** Returns an empty string if there is none. */
  load(uid: string): string;
  /** Replaces the record atomically. */
  save(uid: string, text: string): Promise<void>;
}

/** Results of one container that are restored after a restart of the agent. */
export interface ContainerRecord {
  readonly started?: boolean;
  readonly ready?: boolean;
}

export type PodRecord = ReadonlyMap<string, ContainerRecord>;

/** Loads the record of a pod. An unreadable one is treated as empty: its containers are probed again. */
export function readRecord(files: RecordFiles, uid: string, log: Logger): PodRecord {
  try {
    const text = files.load(uid);
    return text === "" ? new Map() : parseRecord(text);
  } catch (error) {
    log.warn("Failed to load probe results of pod", { podUID: uid, error: messageOf(error) });
    return new Map();
  }
}

export function parseRecord(text: string): PodRecord {
  const record = new Map<string, ContainerRecord>();
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed !== "object" || parsed === null || !("containers" in parsed)) return record;
  const { containers } = parsed;
  if (typeof containers !== "object" || containers === null) return record;
  for (const [id, flags] of Object.entries(containers)) {
    if (typeof flags !== "object" || flags === null) continue;
    record.set(id, {
      ...("started" in flags && flags.started === true ? { started: true } : {}),
      ...("ready" in flags && flags.ready === true ? { ready: true } : {}),
    });
  }
  return record;
}

export function formatRecord(record: PodRecord): string {
  return `${JSON.stringify({ version: 1, containers: Object.fromEntries(record) })}\n`;
}

/** Persists one pod's record, one write at a time; a change during a write is written after it. */
export class RecordWriter {
  private next: PodRecord | undefined;
  private isWriting = false;
  private isClosed = false;

  constructor(
    private readonly uid: string,
    private readonly deps: { files: RecordFiles; log: Logger },
  ) {}

  write(record: PodRecord): void {
    if (this.isClosed) return;
    this.next = record;
    if (!this.isWriting) void this.drain();
  }

  /** Stops writing: the pod's directory is about to be removed. */
  close(): void {
    this.isClosed = true;
    this.next = undefined;
  }

  private async drain(): Promise<void> {
    this.isWriting = true;
    while (this.next !== undefined) {
      const record = this.next;
      this.next = undefined;
      try {
        await this.deps.files.save(this.uid, formatRecord(record));
      } catch (error) {
        // Readiness is still correct; only after a restart of the agent the containers are probed again.
        this.deps.log.warn("Failed to persist probe results of pod", {
          podUID: this.uid,
          error: messageOf(error),
        });
      }
    }
    this.isWriting = false;
  }
}
