import type { Container, Pod } from "../model/generated/types.ts";
import { isSidecar } from "../model/pod-facts.ts";

/** What the containers before one hand on of a resource. */
interface Handed {
  /** The number of containers that were looked at. */
  next: number;
  /** What the latest container handed on comes first. */
  ids: Set<string>;
  /** The ids as a list; undefined if they changed since. */
  list: readonly string[] | undefined;
}

/** Returns the ids that a container of the pod has of the resource, or is about to get. */
type HeldBy = (container: string, resource: string) => readonly string[] | undefined;

/**
 * The devices that containers of one pod may take over from earlier init containers: those of sidecars and of regular
 * containers are in use beside them. Fast if containers are asked for in their order: a pod may have thousands that hand on
 * the same devices. Whoever changes what a container has calls `changed`.
 */
export class HandedOn {
  private readonly all: readonly Container[];
  private readonly places: ReadonlyMap<string, number>;
  private readonly byResource = new Map<string, Handed>();

  constructor(
    readonly pod: Pod,
    private readonly heldBy: HeldBy,
  ) {
    const { initContainers = [], containers } = pod.spec;
    this.all = [...initContainers, ...containers];
    this.places = new Map(this.all.map(({ name }, at) => [name, at]));
  }

  /** Returns at most so many ids that the container may take over. */
  before(container: string, resource: string, most: number): readonly string[] {
    const handed = this.at(this.places.get(container) ?? 0, resource);
    handed.list ??= [...handed.ids];
    return handed.list.length <= most ? handed.list : handed.list.slice(0, most);
  }

  /** The container has other devices than before: if later ones were looked at, what they hand on is found anew. */
  changed(container: string): void {
    const at = this.places.get(container) ?? 0;
    for (const [resource, { next }] of this.byResource) if (at < next) this.byResource.delete(resource);
  }

  private at(place: number, resource: string): Handed {
    const before = this.byResource.get(resource);
    const isUsable = before !== undefined && before.next <= place;
    const handed: Handed = isUsable ? before : { next: 0, ids: new Set(), list: [] };
    this.byResource.set(resource, handed);
    for (; handed.next < place; handed.next++) this.pass(handed, resource);
    return handed;
  }

  private pass(handed: Handed, resource: string): void {
    const container = this.all[handed.next];
    const held = container === undefined ? undefined : this.heldBy(container.name, resource);
    if (container === undefined || held === undefined) return;
    const isDone = handed.next < (this.pod.spec.initContainers?.length ?? 0) && !isSidecar(container);
    // It hands on just what it took over, or takes nothing over.
    if (isDone ? held === handed.list : handed.ids.size === 0) return;
    if (isDone) handed.ids = new Set([...held, ...handed.ids]);
    else for (const id of held) handed.ids.delete(id);
    handed.list = undefined;
  }
}
