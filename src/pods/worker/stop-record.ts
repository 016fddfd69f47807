import { type Abortable, withScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import type { PodFiles } from "../pod-files.ts";
import type { StatusFailure } from "../status/derive.ts";
import type { StopIntent } from "./lifecycle.ts";

export interface StopRecordDeps {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly files: Pick<PodFiles, "readTail" | "writeFile" | "removeFile">;
  /** The pod's own directory: the record goes with it. */
  readonly directory: string;
  /** Changes with each start of the machine. */
  readonly bootId?: string | undefined;
}

const FILE = "stop.json";
/** Upper limit of a record in bytes: messages are much shorter. */
const MAX_BYTES = 256 * 1024;
/** How long a kill waits for its record, in milliseconds: a disk that hangs must not keep alive what has to go. */
const WRITE_MS = 250;

/**
 * Why the agent itself ends a pod (eviction, preemption, shutdown, deadline), persisted before anything of the pod is
 * killed: an agent that is killed meanwhile would otherwise be followed by one that starts the containers again.
 */
export class StopRecord {
  private isSaved = false;

  constructor(private readonly deps: StopRecordDeps) {}

  /** What an earlier agent began; undefined if there is no record, or none that counts. Never rejects. */
  async load(): Promise<StopIntent | undefined> {
    const text = await this.deps.files.readTail(this.path, MAX_BYTES).catch(() => "");
    const found = text === "" ? undefined : decode(text);
    if (found === undefined || (found.bootId !== undefined && found.bootId !== this.deps.bootId)) return undefined;
    this.isSaved = true;
    return found.stop;
  }

  /**
   * Records a stop that has a reason of the agent's own; does nothing for others, and when called again. Not synced: it
   * is for the next agent, not for the next boot. Rejects only for an abort.
   */
  async save({ graceSeconds, failure }: StopIntent, { signal }: Abortable): Promise<void> {
    if (failure === undefined || this.isSaved) return;
    this.isSaved = true;
    const { clock, files, log, bootId } = this.deps;
    const text = `${JSON.stringify({ graceSeconds, failure, ...(failure.untilReboot && { bootId }) })}\n`;
    try {
      const write = files.writeFile(this.path, text, 0o600);
      await withScope([signal], { clock, ms: WRITE_MS }, (limited) => orAborted(write, limited));
    } catch (error) {
      signal.throwIfAborted();
      log.warn("Failed to record why pod is stopped, an agent that is killed meanwhile forgets it", {
        path: this.path,
        error: messageOf(error),
      });
    }
  }

  /** Succeeds if there is none. */
  async remove(): Promise<void> {
    if (!this.isSaved) return;
    await this.deps.files.removeFile(this.path);
    this.isSaved = false;
  }

  private get path(): string {
    return `${this.deps.directory}/${FILE}`;
  }
}

/** Undefined for a text of another shape. Pure. */
function decode(text: string): { readonly stop: StopIntent; readonly bootId: string | undefined } | undefined {
  const { graceSeconds, failure, bootId } = asObject(parsed(text));
  const { reason, message, disruption, mayEndWell, untilReboot } = asObject(failure);
  if (typeof reason !== "string" || typeof message !== "string" || typeof graceSeconds !== "number") return undefined;
  const known: StatusFailure = {
    reason,
    message,
    ...(typeof disruption === "string" && { disruption }),
    ...(mayEndWell === true && { mayEndWell }),
    ...(untilReboot === true && { untilReboot }),
  };
  return { stop: { graceSeconds, failure: known }, bootId: typeof bootId === "string" ? bootId : undefined };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}; // reason: checked
}
