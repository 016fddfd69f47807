import type { LogWrite } from "../../adapters/objectlog/index.ts";
import { type Collection, keyOf } from "./collection.ts";
import type { StoreEvent } from "./history.ts";
import { type JsonObject, type ObjectPlace, StoredObject } from "./stored-object.ts";

/** The newest state, with writes that are not durable yet. */
export interface NewestState {
  collection(id: string): Collection;
  /** The last pending write of the key. */
  pending(logKey: string): StoreEvent | undefined;
  pendingOf(id: string): Iterable<readonly [logKey: string, event: StoreEvent]>;
  nextRevision(): number;
}

interface PendingEvent {
  readonly collection: Collection;
  readonly event: StoreEvent;
  readonly logKey: string;
}

/** Reads and writes that become durable together or not at all. Synchronous: nothing changes between its calls. */
export class Transaction {
  readonly events: PendingEvent[] = [];
  /** Characters that the objects have more than before. */
  growth = 0;
  private readonly own = new Map<string, StoreEvent>();

  constructor(private readonly state: NewestState) {}

  /** The object as it is with all earlier writes. */
  get(id: string, place: ObjectPlace): StoredObject | undefined {
    const logKey = logKeyOf(id, place);
    const event = this.own.get(logKey) ?? this.state.pending(logKey);
    if (event === undefined) return this.state.collection(id).get(keyOf(place));
    return event.type === "deleted" ? undefined : event.object;
  }

  /** The objects of a collection with all earlier writes, in no order; of one namespace if it is given. */
  list(id: string, namespace?: string): StoredObject[] {
    const all = new Map<string, StoredObject>();
    for (const object of this.state.collection(id).list()) all.set(logKeyOf(id, object), object);
    for (const [logKey, event] of [...this.state.pendingOf(id), ...this.own]) {
      if (!logKey.startsWith(`${id}/`)) continue;
      if (event.type === "deleted") all.delete(logKey);
      else all.set(logKey, event.object);
    }
    return [...all.values()].filter((object) => namespace === undefined || object.namespace === namespace);
  }

  /** Writes an object; its `metadata.resourceVersion` is set in place. */
  put(id: string, place: ObjectPlace, tree: JsonObject): StoredObject {
    const previous = this.get(id, place);
    const object = this.version(place, tree);
    this.add(id, previous === undefined ? { type: "added", object } : { type: "modified", object, previous });
    return object;
  }

  /** Deletes an object; its last state has the revision of the deletion. Throws if there is none. */
  remove(id: string, place: ObjectPlace): StoredObject {
    const previous = this.get(id, place);
    if (previous === undefined) throw new Error(`remove ${logKeyOf(id, place)}: there is no such object`);
    const object = this.version(place, previous.parse());
    this.add(id, { type: "deleted", object, previous });
    return object;
  }

  private version(place: ObjectPlace, tree: JsonObject): StoredObject {
    const revision = this.state.nextRevision();
    // Every object that is stored has metadata.
    (tree.metadata as JsonObject).resourceVersion = String(revision);
    return new StoredObject(place, JSON.stringify(tree), revision);
  }

  private add(id: string, event: StoreEvent): void {
    const logKey = logKeyOf(id, event.object);
    if (event.type !== "deleted") this.growth += event.object.text.length;
    if (event.type !== "added") this.growth -= event.previous.text.length;
    this.own.set(logKey, event);
    this.events.push({ collection: this.state.collection(id), event, logKey });
  }
}

/** `pods/default/web`. */
export function logKeyOf(id: string, { namespace, name }: ObjectPlace): string {
  return `${id}/${namespace}/${name}`;
}

/** The write of an event for the log. */
export function logWriteOf({ collection, event, logKey }: PendingEvent): LogWrite {
  const { revision, text } = event.object;
  const value = event.type === "deleted" ? undefined : text;
  return { key: logKey, revision, value, ...(collection.options.isSecret && { isSecret: true }) };
}
