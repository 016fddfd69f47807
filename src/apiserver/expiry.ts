import { LogError } from "../adapters/objectlog/index.ts";
import { type Abortable, isAborted } from "../lib/abort.ts";
import type { Logger } from "../lib/log.ts";
import { eventLoopTurn } from "../lib/turn.ts";
import type { Kind } from "./kinds/kind.ts";
import type { OperationDeps } from "./operations/context.ts";
import { isTree } from "./schema/type-schema.ts";
import type { StoredObject } from "./store/index.ts";

/** Milliseconds between two looks at what has expired. */
const INTERVAL_MS = 60_000;
/** Times of an event, the newest that is set counts. */
const TIMES = ["lastTimestamp", "eventTime", "firstTimestamp"];

/** Objects that are removed in one go: others get a turn in between. */
const PIECE = 500;

/** Removes objects of kinds that are kept for a while only, such as events. */
export class Expiry {
  private readonly seen = new WeakMap<StoredObject, number>();

  constructor(private readonly deps: OperationDeps & { readonly log: Logger }) {}

  /** Runs until the signal aborts. */
  async run({ signal }: Abortable): Promise<void> {
    try {
      for (;;) {
        await this.deps.clock.sleep(INTERVAL_MS, { signal });
        await this.attempt();
      }
    } catch (error) {
      if (!isAborted(error, signal)) throw error;
    }
  }

  /** A disk that is full or fails must not end the agent: what has expired goes when it works again. */
  private async attempt(): Promise<void> {
    try {
      await this.sweep();
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      if (error.code !== "Closed") this.deps.log.warn("Failed to remove expired events", { error: error.message });
    }
  }

  /** Removes what has expired now. Rejects with `LogError`. */
  async sweep(): Promise<void> {
    for (const kind of this.deps.kinds.all) {
      if (kind.ttlMs === undefined || kind.storedAs !== undefined) continue;
      const expired = this.expired(kind, kind.ttlMs);
      for (let begin = 0; begin < expired.length; begin += PIECE) {
        await this.remove(kind, expired.slice(begin, begin + PIECE));
        await eventLoopTurn();
      }
    }
  }

  private remove({ collection }: Kind, expired: readonly StoredObject[]): Promise<void> {
    return this.deps.store.commit((transaction) => {
      for (const object of expired) {
        // Only if nobody wrote it again meanwhile.
        if (transaction.get(collection, object) === object) transaction.remove(collection, object);
      }
    });
  }

  private expired({ collection }: Kind, ttlMs: number): readonly StoredObject[] {
    const limit = this.deps.clock.now().wall - ttlMs;
    return this.deps.store.list(collection).filter((object) => this.lastSeen(object) < limit);
  }

  private lastSeen(object: StoredObject): number {
    const known = this.seen.get(object);
    if (known !== undefined) return known;
    const tree = object.parse();
    const series = isTree(tree.series) ? tree.series.lastObservedTime : undefined;
    const created = isTree(tree.metadata) ? tree.metadata.creationTimestamp : undefined;
    const times = [series, ...TIMES.map((name) => tree[name]), created];
    const newest = Math.max(...times.map((time) => (typeof time === "string" ? Date.parse(time) || 0 : 0)));
    this.seen.set(object, newest);
    return newest;
  }
}
