import type { Abortable } from "./abort.ts";
import type { Live } from "./live.ts";

export interface LaneOptions extends Abortable {
  /** Goes before all that are not critical; among its like, first come first served. */
  readonly critical?: boolean;
  /** Hears the place in the queue while waiting (1 is next) and 0 when the work starts. */
  readonly onPosition?: (position: number) => void;
}

interface Waiting {
  readonly critical: boolean;
  readonly onPosition: ((position: number) => void) | undefined;
  readonly admit: () => void;
}

/**
 * Lets a bounded number of works run at once, in the order in which they came, critical ones first.
 * The limit may change at any time: a raised one admits at once, a lowered one only lets fewer in. 0 or less: no limit.
 */
export class Lane {
  private readonly queue: Waiting[] = [];
  private active = 0;

  /** `signal` ends only the watching of the limit: waiting works have signals of their own. */
  constructor(
    private readonly limit: Live<number>,
    { signal }: Abortable,
  ) {
    limit.onChange(() => this.admit(), { signal });
  }

  get running(): number {
    return this.active;
  }

  get waiting(): number {
    return this.queue.length;
  }

  /** Runs `work` when its turn comes. Aborted while waiting: leaves the queue and rejects with the signal's reason. */
  async run<T>(work: () => Promise<T>, options: LaneOptions): Promise<T> {
    await this.enter(options);
    try {
      return await work();
    } finally {
      this.active--;
      this.admit();
    }
  }

  private enter({ signal, critical = false, onPosition }: LaneOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      const onAbort = (): void => {
        this.queue.splice(this.queue.indexOf(entry), 1);
        reject(signal.reason as Error);
        this.announce();
      };
      const entry: Waiting = {
        critical,
        onPosition,
        admit: () => {
          signal.removeEventListener("abort", onAbort);
          this.active++;
          onPosition?.(0);
          resolve();
        },
      };
      signal.addEventListener("abort", onAbort, { once: true });
      const place = critical ? this.queue.findIndex((other) => !other.critical) : -1;
      this.queue.splice(place === -1 ? this.queue.length : place, 0, entry);
      this.admit();
      if (this.queue.includes(entry)) {
        if (place === -1) onPosition?.(this.queue.length);
        else this.announce();
      }
    });
  }

  private admit(): void {
    let admitted = false;
    while (this.queue.length > 0 && this.hasRoom()) {
      this.queue.shift()?.admit();
      admitted = true;
    }
    if (admitted) this.announce();
  }

  private hasRoom(): boolean {
    return this.limit.current <= 0 || this.active < this.limit.current;
  }

  private announce(): void {
    this.queue.forEach((entry, index) => {
      entry.onPosition?.(index + 1);
    });
  }
}
