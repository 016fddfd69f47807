import {
  type LoadedObjects,
  type LogContent,
  LogError,
  type LogWrite,
  type ObjectLog,
} from "../../adapters/objectlog/index.ts";
import { type Collection, keyOf } from "./collection.ts";
import type { EventQueue } from "./event-queue.ts";
import type { StoreEvent } from "./history.ts";
import { type JsonObject, type ObjectPlace, StoredObject } from "./stored-object.ts";
import { logKeyOf, logWriteOf, type NewestState, Transaction } from "./transaction.ts";

/**
 * Characters of all objects: an agent that runs out of memory would load the same objects again at each start. Pods and
 * what watches them take four times as much of its heap, which has 512 MB.
 */
const MOST_LENGTH = 100 << 20;
/** Characters that a status adds to its object at most, usually: so little is taken beyond `MOST_LENGTH`. */
const SMALL_CHANGE = 16 * 1024;
/**
 * How far small changes may go beyond `MOST_LENGTH`, as factors: a full store must not stop the status of what runs, nor
 * the end of what is being deleted, for which some room is left by the others. Both bounds are within the agent's heap.
 */
const MARGINS = { existing: 1.1, terminating: 1.2 };
/** Characters that a deletion adds to an object that it does not remove at once: its time, grace period and finalizers. */
const MOST_DELETION_MARK = 1024;

interface Commit {
  readonly transaction: Transaction;
  resolve(): void;
  reject(error: unknown): void;
}

/** Opens the log of a store: what it loads, and where it writes. `content` is called only later. */
export type OpenLog = (content: () => LogContent) => Promise<LoadedObjects & { readonly log: ObjectLog }>;

/**
 * All objects, in memory and on disk. A write is prepared on the newest state, appended to the log with others that came
 * meanwhile, and only then seen by readers and watches: what was seen is never lost.
 *
 *   commit ──► pending ──append──► published to collections, history and watches ──► the caller's promise
 *                 └──fails──► all that is pending is dropped, because it was prepared on what is not there
 */
export class ApiStore {
  /** The last write of each object that is not durable yet. */
  private readonly pending = new Map<string, StoreEvent>();
  private readonly queue: Commit[] = [];
  private readonly waiters = new Set<() => void>();
  /** Objects of collections that this version does not know: kept on disk. */
  private readonly foreign: LogWrite[] = [];
  private readonly state: NewestState;
  private readonly idle: (() => void)[] = [];
  private log: ObjectLog | undefined;
  private isAppending = false;
  private assigned: number;
  private published: number;
  /** Characters of what is durable, and what pending writes add to it. */
  private length = 0;
  private pendingLength = 0;

  private constructor(
    private readonly collections: ReadonlyMap<string, Collection>,
    private readonly mostLength: number,
  ) {
    this.assigned = 0;
    this.published = 0;
    this.state = {
      collection: (id) => this.collection(id),
      pending: (logKey) => this.pending.get(logKey),
      pendingOf: (id) => [...this.pending].filter(([logKey]) => logKey.startsWith(`${id}/`)),
      nextRevision: () => ++this.assigned,
    };
  }

  /** Loads what is on disk. `collectionsAt` makes the collections for that revision. Rejects with `LogError`. */
  static async open(
    openLog: OpenLog,
    collectionsAt: (revision: number) => ReadonlyMap<string, Collection>,
    { mostLength = MOST_LENGTH }: { readonly mostLength?: number } = {},
  ): Promise<ApiStore> {
    const opened: { store?: ApiStore } = {};
    const { log, objects, revision } = await openLog(() => opened.store?.content() ?? { revision: 0, objects: [] });
    const store = new ApiStore(collectionsAt(revision), mostLength);
    opened.store = store;
    store.log = log;
    store.assigned = revision;
    store.published = revision;
    for (const write of objects) store.restore(write);
    return store;
  }

  /** The newest revision that readers see. */
  get revision(): number {
    return this.published;
  }

  get(id: string, place: ObjectPlace): StoredObject | undefined {
    return this.collection(id).get(keyOf(place));
  }

  /** All objects, ordered by namespace and name. */
  list(id: string): readonly StoredObject[] {
    return this.collection(id).list();
  }

  /** All objects as they were at a revision; undefined if that is not known any more. */
  listAt(id: string, revision: number): readonly StoredObject[] | undefined {
    return this.collection(id).listAt(revision);
  }

  /** The changes after a revision and all later ones; undefined if some of them are not known any more. Close it. */
  watch(id: string, revision: number): EventQueue | undefined {
    return this.collection(id).watch(revision);
  }

  /** The oldest revision that a watch of the collection may begin at. */
  oldest(id: string): number {
    return this.collection(id).oldest;
  }

  /**
   * Runs `work` on the newest state and resolves with what it returned once all of that is durable and visible. Rejects
   * with what `work` throws, and with `LogError` if it cannot be written or if there are too many objects.
   */
  async commit<T>(work: (transaction: Transaction) => T): Promise<T> {
    if (this.log === undefined) throw new LogError("Closed", "write objects: the store was closed");
    const transaction = new Transaction(this.state);
    const result = work(transaction);
    // Without writes, it may still have read what is not durable yet.
    if (transaction.events.length === 0 && this.pending.size === 0) return result;
    this.checkRoom(transaction);
    this.pendingLength += transaction.growth;
    for (const { logKey, event } of transaction.events) this.pending.set(logKey, event);
    await new Promise<void>((resolve, reject) => {
      this.queue.push({ transaction, resolve, reject });
      if (!this.isAppending) void this.appendAll(this.log);
    });
    return result;
  }

  /** Runs `work` on the newest state and returns what it returned. Nothing of it is written. Throws what `work` throws. */
  preview<T>(work: (transaction: Transaction) => T): T {
    return work(new Transaction(this.state));
  }

  /** Calls `fn` at each new revision until `cancel` is called. */
  onRevision(fn: () => void): { cancel(): void } {
    this.waiters.add(fn);
    return { cancel: () => void this.waiters.delete(fn) };
  }

  /** Ends all watches, and closes the log after the writes that have begun. */
  async close(): Promise<void> {
    const { log } = this;
    this.log = undefined;
    for (const collection of this.collections.values()) collection.close();
    if (this.isAppending) await new Promise<void>((resolve) => this.idle.push(resolve));
    await log?.close();
  }

  private async appendAll(log: ObjectLog | undefined): Promise<void> {
    this.isAppending = true;
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0);
      const events = batch.flatMap(({ transaction }) => transaction.events);
      try {
        if (events.length > 0) await log?.append(events.map(logWriteOf));
      } catch (error) {
        this.pending.clear();
        this.pendingLength = 0;
        for (const commit of [...batch, ...this.queue.splice(0)]) commit.reject(error);
        continue;
      }
      for (const { collection, event, logKey } of events) {
        // A later write of the same object may be pending already.
        if (this.pending.get(logKey) === event) this.pending.delete(logKey);
        this.published = event.object.revision;
        collection.publish(event);
      }
      for (const { transaction } of batch) {
        this.length += transaction.growth;
        this.pendingLength -= transaction.growth;
      }
      // What was written together is sent together.
      for (const collection of new Set(events.map((one) => one.collection))) collection.flush();
      for (const commit of batch) commit.resolve();
      for (const waiter of [...this.waiters]) waiter();
    }
    this.isAppending = false;
    for (const resolve of this.idle.splice(0)) resolve();
  }

  /** Throws `LogError` if the objects would have too many characters together. */
  private checkRoom({ growth, events }: Transaction): void {
    const length = this.length + this.pendingLength;
    if (growth <= 0 || length + growth <= this.mostLength) return;
    const most = events.reduce((least, { event }) => Math.min(least, this.mostAfter(event)), Number.POSITIVE_INFINITY);
    if (length + growth <= most) return;
    const message = `all objects have ${length} characters, and may have ${most}`;
    throw new LogError("NoSpace", `write objects: ${message}: delete some`);
  }

  /**
   * Returns how many characters all objects may have after a change of one. What frees room is never rejected: neither a
   * removal, nor an object that becomes smaller, nor the mark of a deletion, which is set only once for each object.
   */
  private mostAfter(event: StoreEvent): number {
    if (event.type === "deleted") return Number.POSITIVE_INFINITY;
    if (event.type === "added") return this.mostLength;
    const growth = lengthWithoutRevision(event.object) - lengthWithoutRevision(event.previous);
    if (growth <= 0) return Number.POSITIVE_INFINITY;
    if (growth >= SMALL_CHANGE) return this.mostLength;
    if (!isTerminating(event.object)) return Math.floor(this.mostLength * MARGINS.existing);
    if (growth <= MOST_DELETION_MARK && !isTerminating(event.previous)) return Number.POSITIVE_INFINITY;
    return Math.floor(this.mostLength * MARGINS.terminating);
  }

  private collection(id: string): Collection {
    const found = this.collections.get(id);
    if (found === undefined) throw new Error(`there is no collection ${id}`);
    return found;
  }

  private content(): LogContent {
    return { revision: this.published, objects: this.writes() };
  }

  private *writes(): Generator<LogWrite> {
    for (const [id, collection] of this.collections) {
      const isSecret = collection.options.isSecret === true;
      for (const object of collection.list()) {
        yield { key: logKeyOf(id, object), revision: object.revision, value: object.text, isSecret };
      }
    }
    yield* this.foreign;
  }

  private restore(write: LogWrite & { readonly value: string }): void {
    const [id = "", namespace = "", ...rest] = write.key.split("/");
    const object = new StoredObject({ namespace, name: rest.join("/") }, write.value, write.revision);
    this.length += write.value.length;
    const collection = this.collections.get(id);
    if (collection === undefined) this.foreign.push(write);
    else collection.restore(object);
  }
}

/** Each revision has as many digits as the store is old: a lease that is renewed must not count as one that grows. */
function lengthWithoutRevision({ text, revision }: StoredObject): number {
  return text.length - String(revision).length;
}

function isTerminating(object: StoredObject): boolean {
  // Every object that is stored has metadata.
  return (object.shared().metadata as JsonObject).deletionTimestamp !== undefined;
}
