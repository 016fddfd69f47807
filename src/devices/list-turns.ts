import type { Abortable } from "../lib/abort.ts";
import { Budget } from "../lib/budget.ts";
import type { Clock } from "../lib/clock.ts";
import { WorkPace } from "../lib/work-pace.ts";

/**
 * Lists of one resource: five a second, 20 at once, and fewer long ones, by their bytes. One of 4 MiB keeps the agent busy
 * for about 0.4 s, and the next may follow 10 s later: lists without end take a twentieth of a core.
 */
const LISTS = { pieceMs: 200, itemMs: 0.0025, burstMs: 3800 };
/** Bytes of a long list: a few hundred devices. */
const LONG_BYTES = 16 * 1024;
/**
 * Long lists of all resources together: a quarter of a core, after three of 4 MiB. However many resources a plugin has, the
 * agent has time for other work, and for the lists of plugins with a few devices.
 */
const LONG_LISTS = { pieceMs: 0, itemMs: 0.0004, burstMs: 5000 };
/** Bytes of lists that wait until they are decoded. */
const WAITING_BYTES = 64 * 1024 * 1024;

/** Decides when lists of device plugins are decoded, so that lists without end keep the agent neither busy nor large. */
export class ListTurns {
  private readonly pace: WorkPace;
  private readonly longPace: WorkPace;
  private readonly waiting = new Budget(WAITING_BYTES);

  constructor(clock: Clock) {
    this.pace = new WorkPace(clock, LISTS);
    this.longPace = new WorkPace(clock, LONG_LISTS);
  }

  /** Resolves when a list of the resource may be decoded; rejects if too many wait, or the signal aborts. */
  async turn(resource: string, bytes: number, { signal }: Abortable): Promise<void> {
    const release = this.waiting.take(bytes);
    if (release === undefined)
      throw new Error(`lists of device plugins that wait have more than ${WAITING_BYTES} bytes`);
    try {
      await this.pace.turn(resource, { signal });
      if (bytes > LONG_BYTES) await this.longPace.turn("", { signal });
    } finally {
      release();
    }
  }

  /** Notes that a list of the resource is decoded now. */
  spend(resource: string, bytes: number): void {
    this.pace.spend(resource, bytes);
    if (bytes > LONG_BYTES) this.longPace.spend("", bytes);
  }
}
