import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";

/** Where a pod's record is kept; one small file a pod in the agent's own directory. */
export interface RecordFiles {
  /** Empty when there is none. */
  load(uid: string): string;
  /** Replaces it as a whole. */
  save(uid: string, text: string): Promise<void>;
}

/** What must survive a restart of the agent, by container id. */
export interface ContainerRecord {
  readonly started?: boolean;
  readonly ready?: boolean;
}

export type PodRecord = ReadonlyMap<string, ContainerRecord>;

/** The record of a pod. One that cannot be read counts as empty: its containers are probed anew. */
export function readRecord(files: RecordFiles, uid: string, log: Logger): PodRecord {
  try {
    const text = files.load(uid);
    return text === "" ? new Map() : parseRecord(text);
  } catch (error) {
    log.warn("the record of a pod's probes cannot be read", { uid, error: messageOf(error) });
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

/** Writes one pod's record, one write at a time; what changes during a write is written after it. */
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

  /** From now on nothing is written: the pod's directory is about to go. */
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
        // Readiness is right all the same; only a restart of the agent would have to probe before it knows.
        this.deps.log.warn("the record of a pod's probes cannot be written", {
          uid: this.uid,
          error: messageOf(error),
        });
      }
    }
    this.isWriting = false;
  }
}
