import type { DeviceList } from "../adapters/devices/plugin-client.ts";
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
/** Bytes of a list that always may wait: of 500 resources these are as much again as `WAITING_BYTES`. */
const SMALL_BYTES = 128 * 1024;
/** Bytes of larger lists that wait until they are decoded. */
const WAITING_BYTES = 64 * 1024 * 1024;

/** Lists that newer ones replaced while they waited: a thousand a second of all resources, each costs the agent some 50 µs. */
const REPLACED = { pieceMs: 1, itemMs: 0, burstMs: 500 };

/** Decides when lists of device plugins are decoded, so that lists without end keep the agent neither busy nor large. */
export class ListTurns {
  private readonly pace: WorkPace;
  private readonly longPace: WorkPace;
  private readonly replacedPace: WorkPace;
  private readonly waiting = new Budget(WAITING_BYTES);

  constructor(clock: Clock) {
    this.pace = new WorkPace(clock, LISTS);
    this.longPace = new WorkPace(clock, LONG_LISTS);
    this.replacedPace = new WorkPace(clock, REPLACED);
  }

  /**
   * Yields a list of the resource when it may be decoded. A short one that waits is replaced by a newer one: the agent
   * follows a plugin whose devices come and go quickly. Throws if too many bytes wait, or the signal aborts.
   */
  async *inTurn(
    resource: string,
    lists: AsyncIterable<DeviceList>,
    { signal }: Abortable,
  ): AsyncGenerator<DeviceList, void, undefined> {
    const received = new Received(lists);
    try {
      for (;;) {
        const first = await received.next();
        if (first === undefined) return;
        const held = new HeldList(this.waiting, first);
        try {
          await this.turn(resource, received, { held, signal });
        } finally {
          held.release();
        }
        // Also if it cannot be used.
        this.spend(resource, held.list.bytes);
        yield held.list;
      }
    } finally {
      received.end();
    }
  }

  /** Resolves when the list may be decoded that is held then. */
  private async turn(
    resource: string,
    received: Received,
    { held, signal }: Abortable & { readonly held: HeldList },
  ): Promise<void> {
    if (!this.pace.isDue(resource)) {
      const turn = this.pace.turn(resource, { signal });
      turn.catch(() => undefined);
      while (held.list.bytes <= LONG_BYTES && this.replacedPace.isDue("")) {
        const newer = await Promise.race([turn, received.peek()]);
        if (newer === undefined) break;
        received.take();
        held.replace(newer);
        this.replacedPace.spend("", 1);
      }
      await turn;
    }
    if (held.list.bytes > LONG_BYTES) await this.longPace.turn("", { signal });
  }

  private spend(resource: string, bytes: number): void {
    this.pace.spend(resource, bytes);
    if (bytes > LONG_BYTES) this.longPace.spend("", bytes);
  }
}

/** The newest list of a resource, and its part of the budget. */
class HeldList {
  private returned: () => void;

  constructor(
    private readonly budget: Budget,
    public list: DeviceList,
  ) {
    this.returned = this.take(list);
  }

  replace(list: DeviceList): void {
    this.release();
    this.list = list;
    this.returned = this.take(list);
  }

  release(): void {
    this.returned();
  }

  private take({ bytes }: DeviceList): () => void {
    const taken = this.budget.take(bytes > SMALL_BYTES ? bytes : 0);
    if (taken !== undefined) return taken;
    throw new Error(`lists of device plugins that wait have more than ${WAITING_BYTES} bytes`);
  }
}

/** The lists of a stream, of which the next may be looked at before it is taken. */
class Received {
  private readonly lists: AsyncIterator<DeviceList>;
  private ahead: Promise<DeviceList | undefined> | undefined;

  constructor(lists: AsyncIterable<DeviceList>) {
    this.lists = lists[Symbol.asyncIterator]();
  }

  /** The next list, received if it was not yet; undefined at the end. It stays the next one. */
  peek(): Promise<DeviceList | undefined> {
    if (this.ahead !== undefined) return this.ahead;
    this.ahead = this.lists.next().then(({ done, value }) => (done === true ? undefined : value));
    // Whoever looked may not wait for it any more.
    this.ahead.catch(() => undefined);
    return this.ahead;
  }

  take(): void {
    this.ahead = undefined;
  }

  async next(): Promise<DeviceList | undefined> {
    const list = await this.peek();
    if (list !== undefined) this.take();
    return list;
  }

  /** Not waited for: the stream may be silent until its connection is closed. */
  end(): void {
    this.lists.return?.().catch(() => undefined);
  }
}
