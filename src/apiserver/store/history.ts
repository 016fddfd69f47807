import type { StoredObject } from "./stored-object.ts";

/** A change of one object. */
export type StoreEvent =
  | { readonly type: "added"; readonly object: StoredObject }
  | { readonly type: "modified"; readonly object: StoredObject; readonly previous: StoredObject }
  | { readonly type: "deleted"; readonly object: StoredObject; readonly previous: StoredObject };

/** How much of the past is kept: so many events at least, and more up to this size of their texts. */
export interface HistoryLimits {
  readonly events: number;
  readonly bytes: number;
}

/** The newest changes of a collection, in order. */
export class History {
  private events: StoreEvent[] = [];
  private first = 0;
  private bytes = 0;
  /** Everything after this revision is here. */
  private floor: number;

  constructor(
    private readonly limits: HistoryLimits,
    revision: number,
  ) {
    this.floor = revision;
  }

  add(event: StoreEvent): void {
    this.events.push(event);
    this.bytes += event.object.text.length;
    while (this.bytes > this.limits.bytes && this.events.length - this.first > this.limits.events) this.drop();
    // Dropped entries are removed in bulk: `shift` costs as much as the array is long.
    if (this.first > this.limits.events) {
      this.events = this.events.slice(this.first);
      this.first = 0;
    }
  }

  /** The oldest revision whose successors are all known. */
  get oldest(): number {
    return this.floor;
  }

  /** The events after a revision; undefined if some of them are not known any more. */
  after(revision: number): readonly StoreEvent[] | undefined {
    if (revision < this.floor) return undefined;
    let low = this.first;
    let high = this.events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.events[middle]?.object.revision ?? 0) <= revision) low = middle + 1;
      else high = middle;
    }
    return this.events.slice(low);
  }

  private drop(): void {
    const event = this.events[this.first++];
    if (event === undefined) return;
    this.bytes -= event.object.text.length;
    this.floor = event.object.revision;
  }
}
