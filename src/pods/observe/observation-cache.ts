import type { ObservedPod } from "../../model/observed.ts";

/** The sandboxes and containers of a pod in the runtime, by id. */
export interface PodParts {
  readonly sandboxes: readonly string[];
  readonly containers: readonly { readonly id: string; readonly sandboxId: string }[];
}

/** A pod that is being read. Returned by `beginRead`, handed back to `store`. */
export interface ReadTicket {
  readonly uid: string;
  /** What the pod consists of, or undefined when only a list can tell. */
  readonly parts: PodParts | undefined;
  readonly record: object;
  readonly version: number;
  /** Exited containers whose status has to be read again. */
  readonly outdated: ReadonlySet<string>;
}

/** One sandbox or container as a list of the whole runtime shows it. */
export interface ListedPart {
  readonly id: string;
  readonly uid: string;
}

interface PodRecord {
  observed: ObservedPod | undefined;
  /** Undefined while only a list can tell. */
  parts: PodParts | undefined;
  /** Counts the changes of the parts: a read that began before the last one proves nothing about them. */
  version: number;
  /** Ids that `owners` holds for this pod. */
  readonly ids: Set<string>;
  /** Containers that the agent started and nobody has read since. */
  readonly started: Set<string>;
  /** Exited containers whose status has to be read again. */
  outdated: ReadonlySet<string>;
  /** Known from a list of the whole runtime alone; dropped when a later list no longer has it. */
  isListedOnly: boolean;
}

const NO_PARTS: PodParts = { sandboxes: [], containers: [] };
const NONE: ReadonlySet<string> = new Set();

/**
 * The one owner of everything that mirrors the runtime: the last state of each pod, which sandboxes and containers it
 * consists of, which pod an id belongs to, and which containers the agent started itself. `RecordingRuntime` records what the
 * executors create, start and remove; the `Observer` stores what it reads and lists. Nobody but the agent creates
 * parts of a pod, so a pod whose parts are known is not listed again until a call about it fails, an event reports a
 * removal, or the connection is lost.
 */
export class ObservationCache {
  private readonly records = new Map<string, PodRecord>();
  private readonly owners = new Map<string, string>();
  /** True once the whole runtime was listed on this connection: a pod without a record then has no parts. */
  private isComplete = false;

  /** The last state that was read; may be stale. */
  get(uid: string): ObservedPod | undefined {
    return this.records.get(uid)?.observed;
  }

  list(): readonly ObservedPod[] {
    return [...this.records.values()].flatMap(({ observed }) => observed ?? []);
  }

  /** The pod that a sandbox or container belongs to. */
  ownerOf(id: string): string | undefined {
    return this.owners.get(id);
  }

  /** Ids of all sandboxes and containers whose pod is known. */
  ids(): readonly string[] {
    return [...this.owners.keys()];
  }

  /** What the pod consists of, or undefined when only a list can tell. */
  partsOf(uid: string): PodParts | undefined {
    const record = this.records.get(uid);
    if (record !== undefined) return record.parts;
    return this.isComplete ? NO_PARTS : undefined;
  }

  /** True for a container that the agent started and that was not read since: its `started` event is no news. */
  isOwnStart(id: string): boolean {
    return this.records.get(this.owners.get(id) ?? "")?.started.has(id) === true;
  }

  /** Records a sandbox, or (with the sandbox that it is in) a container, that the agent created. */
  created(uid: string, id: string, sandboxId?: string): void {
    const record = this.recordOf(uid);
    record.version++;
    this.own(record, { id, uid });
    if (record.parts === undefined) return;
    const { sandboxes, containers } = record.parts;
    record.parts =
      sandboxId === undefined
        ? { sandboxes: [...sandboxes, id], containers }
        : { sandboxes, containers: [...containers, { id, sandboxId }] };
  }

  /** Records that the agent started a container. */
  started(id: string): void {
    this.records.get(this.owners.get(id) ?? "")?.started.add(id);
  }

  /** Records that the agent removed a container, or a sandbox with everything in it. */
  removed(id: string): void {
    const record = this.records.get(this.owners.get(id) ?? "");
    if (record === undefined) return;
    record.version++;
    this.disown(record, id);
    if (record.parts === undefined) return;
    const { sandboxes, containers } = record.parts;
    for (const container of containers) if (container.sandboxId === id) this.disown(record, container.id);
    record.parts = {
      sandboxes: sandboxes.filter((sandbox) => sandbox !== id),
      containers: containers.filter((container) => container.id !== id && container.sandboxId !== id),
    };
  }

  /** True for an id that is known not to be a part of this pod any more: its `deleted` event is no news. */
  isRemoved(uid: string, id: string): boolean {
    const parts = this.records.get(uid)?.parts;
    if (parts === undefined) return false;
    return !parts.sandboxes.includes(id) && !parts.containers.some((container) => container.id === id);
  }

  /** Makes the next read list the parts of this pod: something may have been created or removed unseen. */
  invalidate(uid: string): void {
    const record = this.recordOf(uid);
    record.version++;
    record.parts = undefined;
  }

  /** Makes the next read ask for the status of this container also when it has exited: an event said more about it. */
  invalidateStatus(id: string): void {
    const record = this.records.get(this.owners.get(id) ?? "");
    if (record !== undefined) record.outdated = new Set([...record.outdated, id]);
  }

  /** `invalidate` for the pod that this sandbox or container belongs to; does nothing when that is not known. */
  invalidateOwner(id: string): void {
    const uid = this.owners.get(id);
    if (uid !== undefined) this.invalidate(uid);
  }

  /** Makes the next read of every pod list its parts: the connection to the runtime was lost. */
  invalidateAll(): void {
    this.isComplete = false;
    for (const uid of this.records.keys()) this.invalidate(uid);
  }

  /** Begins a read of this pod; `store` takes its result. */
  beginRead(uid: string): ReadTicket {
    const parts = this.partsOf(uid);
    const record = this.recordOf(uid);
    return { uid, parts, record, version: record.version, outdated: record.outdated };
  }

  /**
   * Stores what was read. An older read never overwrites a newer one, the parts become known only if none was created,
   * removed or invalidated meanwhile, and a pod that was evicted meanwhile stays evicted.
   */
  store(observed: ObservedPod, ticket: ReadTicket): void {
    const record = this.records.get(ticket.uid);
    if (record === undefined || record !== ticket.record) return;
    if (record.version === ticket.version) record.parts = partsOf(observed);
    if (record.observed !== undefined && record.observed.readAt > observed.readAt) return;
    const current = new Set(idsOf(observed));
    if (record.observed !== undefined) {
      for (const id of idsOf(record.observed)) if (!current.has(id)) this.disown(record, id);
    }
    for (const id of current) this.own(record, { id, uid: ticket.uid });
    for (const { id, state } of observed.containers) if (state !== "created") record.started.delete(id);
    // What was invalidated while the pod was read stays so.
    if (record.outdated === ticket.outdated) record.outdated = NONE;
    record.observed = observed;
  }

  /** Stores a list of the whole runtime. `before` are the ids that were known when the list began. */
  storeList(parts: readonly ListedPart[], before: readonly string[]): void {
    const listed = new Set(parts.map(({ id }) => id));
    const uids = new Set(parts.map(({ uid }) => uid));
    for (const part of parts) {
      const record = this.records.get(part.uid) ?? this.add(part.uid, true);
      this.own(record, part);
    }
    // What was known before the list and is not in it is gone; what was created meanwhile may be too new for it.
    for (const id of before) {
      const record = this.records.get(this.owners.get(id) ?? "");
      if (!listed.has(id) && record !== undefined) this.disown(record, id);
    }
    for (const [uid, record] of this.records) if (record.isListedOnly && !uids.has(uid)) this.records.delete(uid);
    this.isComplete = true;
  }

  /** Drops everything about a pod that was removed from the runtime. */
  evict(uid: string): void {
    for (const id of this.records.get(uid)?.ids ?? []) this.owners.delete(id);
    this.records.delete(uid);
  }

  private recordOf(uid: string): PodRecord {
    const record = this.records.get(uid) ?? this.add(uid, false);
    record.isListedOnly = false;
    return record;
  }

  private add(uid: string, isListedOnly: boolean): PodRecord {
    const parts = isListedOnly ? undefined : this.partsOf(uid);
    const sets = { ids: new Set<string>(), started: new Set<string>(), outdated: NONE };
    const added: PodRecord = { observed: undefined, parts, version: 0, ...sets, isListedOnly };
    this.records.set(uid, added);
    return added;
  }

  private own(record: PodRecord, { id, uid }: ListedPart): void {
    record.ids.add(id);
    this.owners.set(id, uid);
  }

  private disown(record: PodRecord, id: string): void {
    record.ids.delete(id);
    record.started.delete(id);
    this.owners.delete(id);
  }
}

/** Ids of all sandboxes and containers of a pod. */
export function idsOf({ sandboxes, containers }: ObservedPod): string[] {
  return [...sandboxes.map(({ id }) => id), ...containers.map(({ id }) => id)];
}

function partsOf({ sandboxes, containers }: ObservedPod): PodParts {
  return {
    sandboxes: sandboxes.map(({ id }) => id),
    containers: containers.map(({ id, sandboxId }) => ({ id, sandboxId })),
  };
}
