import type { Clock, Timer } from "../../lib/clock.ts";
import { eventLoopTurn } from "../../lib/turn.ts";
import type { Status } from "../../model/generated/types.ts";
import { type EventQueue, type JsonObject, StoredObject, type StoreEvent } from "../store/index.ts";
import { type Selection, selectedPieces } from "./selection.ts";

/** One event of a watch. */
export type WatchItem =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: StoredObject }
  /** Everything up to the revision has been delivered. `isInitialEnd`: the objects of the beginning are complete. */
  | { readonly type: "BOOKMARK"; readonly revision: number; readonly isInitialEnd: boolean }
  | { readonly type: "ERROR"; readonly status: Status };

const nobody = (): void => undefined;

/** What was taken of a source. */
export interface Taken<T> {
  /** In order; may be empty. */
  readonly items: T;
  /** True if the next is there already: others get a turn of the event loop before it is taken. */
  readonly hasMore: boolean;
}

/** What is taken as it comes, by one reader and without waiting. */
export interface Source<T> {
  /** What there is now; undefined at the end. */
  take(): Taken<T> | undefined;
  /** Sets the one who is called when there is something to take, and at the end. It must not throw. */
  onReady(reader: () => void): void;
  /** May be repeated; nobody is called afterwards. */
  close(): void;
}

/** The events of one watch: taken by whoever delivers them, or iterated over. */
export type Watch = Source<readonly WatchItem[]> & AsyncIterable<readonly WatchItem[]>;

/** Iterates over what a source has, and closes it. */
export async function* pulled<T extends { readonly length: number }>(source: Source<T>): AsyncGenerator<T> {
  let wake = nobody;
  source.onReady(() => wake());
  try {
    for (;;) {
      const ready = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const taken = source.take();
      if (taken === undefined) return;
      if (taken.items.length > 0) yield taken.items;
      await (taken.hasMore ? eventLoopTurn() : ready);
    }
  } finally {
    source.close();
  }
}

/** Milliseconds between bookmarks, as in Kubernetes. */
const BOOKMARK_MS = 60_000;
/** A last bookmark comes this long before the end of a watch, in milliseconds. */
const LAST_BOOKMARK_MS = 2000;

export interface StreamDeps {
  readonly clock: Clock;
  readonly store: { readonly revision: number };
  readonly queue: EventQueue;
  readonly selection: Selection;
}

export interface StreamOptions {
  /** What the watch begins with: objects, and the revision of the mark of their end. */
  readonly begin: { readonly objects: readonly StoredObject[]; readonly endMark?: number };
  readonly limitMs: number;
  readonly isMarked: boolean;
}

/** A watch until its time is over, the reader leaves or falls behind. */
export class WatchStream implements Watch {
  private isOver = false;
  private isMarkDue = false;
  /** Dropped when it was delivered: a watch lasts long and must not keep what was there when it began. */
  private begin: Iterator<readonly WatchItem[]> | undefined;
  private readonly timers = new Set<Timer>();
  private readonly onAbort = (): void => {
    const { wake } = this;
    this.close();
    wake();
  };
  private wake = nobody;

  constructor(
    private readonly deps: StreamDeps,
    { begin, limitMs, isMarked }: StreamOptions,
    private readonly signal: AbortSignal,
  ) {
    this.begin = beginning(begin, deps.selection);
    this.wakeAfter(limitMs, () => {
      this.isOver = true;
    });
    if (isMarked) this.markUntil(limitMs);
    deps.queue.onReady(() => this.wake());
    signal.addEventListener("abort", this.onAbort, { once: true });
    if (signal.aborted) this.close();
  }

  take(): Taken<readonly WatchItem[]> | undefined {
    const { queue } = this.deps;
    if (this.signal.aborted) return undefined;
    if (this.begin !== undefined) {
      const { done, value } = this.begin.next();
      if (done !== true) return { items: value, hasMore: true };
      this.begin = undefined;
    }
    const items = queue.take().flatMap((event) => this.itemOf(event) ?? []);
    // A queue that overflowed has dropped events: a client that went on from a mark behind them would never see them.
    if (this.isMarkDue && !queue.isClosed) items.push(this.bookmark());
    if (items.length === 0 && (queue.isClosed || this.isOver)) {
      this.close();
      return undefined;
    }
    // The end comes with the next call.
    return { items, hasMore: queue.isClosed || this.isOver };
  }

  onReady(reader: () => void): void {
    this.wake = reader;
  }

  close(): void {
    this.wake = nobody;
    for (const timer of this.timers) timer.cancel();
    this.timers.clear();
    this.signal.removeEventListener("abort", this.onAbort);
    this.deps.queue.close();
  }

  [Symbol.asyncIterator](): AsyncGenerator<readonly WatchItem[]> {
    return pulled(this);
  }

  private markUntil(limitMs: number): void {
    const mark = (): void => {
      this.isMarkDue = true;
    };
    if (limitMs > 2 * LAST_BOOKMARK_MS) this.wakeAfter(limitMs - LAST_BOOKMARK_MS, mark);
    const repeat = (): void => {
      mark();
      this.wakeAfter(BOOKMARK_MS, repeat);
    };
    this.wakeAfter(BOOKMARK_MS, repeat);
  }

  private wakeAfter(ms: number, act: () => void): void {
    const timer = this.deps.clock.after(ms, () => {
      this.timers.delete(timer);
      act();
      this.wake();
    });
    this.timers.add(timer);
  }

  private bookmark(): WatchItem {
    this.isMarkDue = false;
    return { type: "BOOKMARK", revision: this.deps.store.revision, isInitialEnd: false };
  }

  /** An object that begins or ceases to match is added or deleted for this watch. */
  private itemOf(event: StoreEvent): WatchItem | undefined {
    const { matches } = this.deps.selection;
    if (event.type === "added") return matches(event.object) ? { type: "ADDED", object: event.object } : undefined;
    const was = matches(event.previous);
    if (event.type === "deleted") return was ? { type: "DELETED", object: event.object } : undefined;
    const is = matches(event.object);
    if (is) return { type: was ? "MODIFIED" : "ADDED", object: event.object };
    return was ? { type: "DELETED", object: lostObject(event.previous, event.object.revision) } : undefined;
  }
}

/** A watch that has nothing but an error. */
export function endedWatch(status: Status): Watch {
  const left: WatchItem[][] = [[{ type: "ERROR", status }]];
  const source: Source<readonly WatchItem[]> = {
    take: () => {
      const items = left.shift();
      return items && { items, hasMore: true };
    },
    onReady: () => undefined,
    close: () => undefined,
  };
  return { ...source, [Symbol.asyncIterator]: () => pulled(source) };
}

function* beginning(
  { objects, endMark }: StreamOptions["begin"],
  selection: Selection,
): Generator<readonly WatchItem[], undefined> {
  for (const matching of selectedPieces(objects, selection)) {
    yield matching.map((object) => ({ type: "ADDED", object }));
  }
  if (endMark !== undefined) yield [{ type: "BOOKMARK", revision: endMark, isInitialEnd: true }];
  return undefined;
}

/** By the object as it was: many watches lose it at once. */
const lost = new WeakMap<StoredObject, StoredObject>();

/** An object as it was, with the revision at which it was lost from view. */
function lostObject(object: StoredObject, revision: number): StoredObject {
  const known = lost.get(object);
  if (known?.revision === revision) return known;
  const tree = object.parse();
  (tree.metadata as JsonObject).resourceVersion = String(revision);
  const made = new StoredObject(object, JSON.stringify(tree), revision);
  lost.set(object, made);
  return made;
}
