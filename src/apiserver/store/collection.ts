import { EventQueue } from "./event-queue.ts";
import { History, type HistoryLimits, type StoreEvent } from "./history.ts";
import type { StoredObject } from "./stored-object.ts";

/** What is told apart on disk and in watches: the objects of one resource. */
export interface CollectionOptions {
  /** `pods`, `deployments.apps`. */
  readonly id: string;
  /** Encrypted on disk. */
  readonly isSecret?: boolean;
  readonly history?: HistoryLimits;
}

const HISTORY: HistoryLimits = { events: 100, bytes: 1 << 20 };

/** The durable objects of one resource, their newest changes, and who watches them. */
export class Collection {
  private readonly objects = new Map<string, StoredObject>();
  private readonly history: History;
  private readonly queues = new Set<EventQueue>();
  private sorted: readonly StoredObject[] | undefined;

  constructor(
    readonly options: CollectionOptions,
    revision: number,
  ) {
    this.history = new History(options.history ?? HISTORY, revision);
  }

  get size(): number {
    return this.objects.size;
  }

  get(key: string): StoredObject | undefined {
    return this.objects.get(key);
  }

  /** All objects, ordered by namespace and name. */
  list(): readonly StoredObject[] {
    this.sorted ??= [...this.objects.values()].sort(byPlace);
    return this.sorted;
  }

  /** All objects as they were; undefined if that is not known any more. */
  listAt(revision: number): readonly StoredObject[] | undefined {
    const since = this.history.after(revision);
    if (since === undefined) return undefined;
    if (since.length === 0) return this.list();
    const then = new Map(this.objects);
    for (const event of [...since].reverse()) {
      if (event.type === "added") then.delete(keyOf(event.object));
      else then.set(keyOf(event.previous), event.previous);
    }
    return [...then.values()].sort(byPlace);
  }

  /** The oldest revision that a watch may begin at. */
  get oldest(): number {
    return this.history.oldest;
  }

  /** The changes after a revision and all later ones; undefined if some of them are not known any more. */
  watch(revision: number): EventQueue | undefined {
    const backlog = this.history.after(revision);
    if (backlog === undefined) return undefined;
    const queue: EventQueue = new EventQueue(backlog, () => this.queues.delete(queue));
    this.queues.add(queue);
    return queue;
  }

  /** Takes an object that was loaded. */
  restore(object: StoredObject): void {
    this.objects.set(keyOf(object), object);
  }

  /** Takes a change that is durable. Watches see it at the next `flush`. */
  publish(event: StoreEvent): void {
    const key = keyOf(event.object);
    if (event.type === "deleted") this.objects.delete(key);
    else this.objects.set(key, event.object);
    this.sorted = this.sorted && resorted(this.sorted, event);
    this.history.add(event);
    for (const queue of this.queues) queue.push(event);
  }

  /** Calls the readers of the watches that have something to take. */
  flush(): void {
    for (const queue of [...this.queues]) queue.flush();
  }

  /** Ends all watches. */
  close(): void {
    for (const queue of [...this.queues]) queue.close();
  }
}

/** `namespace/name`; cluster-scoped objects have an empty namespace. */
export function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

function byPlace(a: StoredObject, b: StoredObject): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** A copy with one change: lists that were handed out stay as they are, and nothing is sorted again. */
function resorted(sorted: readonly StoredObject[], { type, object }: StoreEvent): readonly StoredObject[] {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const at = sorted[middle];
    if (at !== undefined && byPlace(at, object) < 0) low = middle + 1;
    else high = middle;
  }
  const next = sorted.slice();
  if (type === "deleted") next.splice(low, 1);
  else next.splice(low, type === "modified" ? 1 : 0, object);
  return next;
}
