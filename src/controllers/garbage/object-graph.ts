import {
  apiVersionOf,
  type KubeApi,
  type KubeObject,
  type ObjectChange,
  Reflector,
  type Resource,
} from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { ObjectMeta, OwnerReference } from "../../model/generated/types.ts";

/** What the garbage collector knows of an object: who it is, whom it depends on, and how far its deletion is. */
export interface GraphNode extends KubeObject {
  readonly metadata: Pick<
    ObjectMeta,
    "name" | "namespace" | "uid" | "resourceVersion" | "ownerReferences" | "finalizers" | "deletionTimestamp"
  >;
  readonly resource: Resource<KubeObject>;
}

/** A change of the graph. `previous` is missing for a new object, `node` for one that is gone. */
export interface GraphChange {
  readonly node?: GraphNode;
  readonly previous?: GraphNode;
}

export interface GraphDeps {
  readonly api: Pick<KubeApi, "list" | "watch">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Metadata of all objects of some resources, by UID, by owner and by namespace. */
export class ObjectGraph {
  private readonly nodes = new Map<string, GraphNode>();
  private readonly dependents = new Map<string, Set<string>>();
  private readonly namespaces = new Map<string, Set<string>>();
  private unsynced: number;
  private onSynced: (() => void) | undefined;

  constructor(
    private readonly deps: GraphDeps,
    private readonly resources: readonly Resource<KubeObject>[],
  ) {
    this.unsynced = resources.length;
  }

  /** Watches until the signal aborts; `onChange` is called once for each change, `onSynced` after all first lists. */
  async run(
    { onChange, onSynced }: { onChange(change: GraphChange): void; onSynced(): void },
    { signal }: Abortable,
  ): Promise<void> {
    this.onSynced = onSynced;
    await Promise.all(this.resources.map((resource) => this.watch(resource, onChange, signal)));
  }

  get isSynced(): boolean {
    return this.unsynced === 0;
  }

  get(uid: string): GraphNode | undefined {
    return this.nodes.get(uid);
  }

  all(): Iterable<GraphNode> {
    return this.nodes.values();
  }

  /** Objects with a reference to the owner of this UID. */
  dependentsOf(uid: string): readonly GraphNode[] {
    return this.found(this.dependents.get(uid));
  }

  inNamespace(namespace: string): readonly GraphNode[] {
    return this.found(this.namespaces.get(namespace));
  }

  private found(uids: ReadonlySet<string> | undefined): readonly GraphNode[] {
    const nodes = [...(uids ?? [])].map((uid) => this.nodes.get(uid));
    return nodes.filter((node): node is GraphNode => node !== undefined);
  }

  private async watch(
    resource: Resource<KubeObject>,
    onChange: (change: GraphChange) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, log } = this.deps;
    let hasSynced = false;
    const reflector = new Reflector<GraphNode>(
      { api: metadataOnly(this.deps.api, resource), clock },
      {
        // The objects that the client below returns are nodes of the graph.
        resource: resource as Resource<GraphNode>,
        select: {},
        firstList: "latest",
        onChange: (change) => onChange(this.accept(change)),
        onSync: () => {
          if (!hasSynced) this.unsynced--;
          hasSynced = true;
          if (this.isSynced) this.onSynced?.();
        },
        onError: ({ code, message }) => log.debug(2, "Failed to watch objects", { kind: resource.kind, code, message }),
      },
    );
    await reflector.run({ signal });
  }

  private accept(change: ObjectChange<GraphNode>): GraphChange {
    const uid = change.object.metadata.uid ?? "";
    const previous = this.nodes.get(uid);
    if (previous !== undefined) this.remove(previous);
    if (change.kind !== "deleted") this.add(change.object);
    return { ...(previous && { previous }), ...(change.kind !== "deleted" && { node: change.object }) };
  }

  private add(node: GraphNode): void {
    const { uid = "", namespace } = node.metadata;
    this.nodes.set(uid, node);
    for (const owner of ownersOf(node)) join(this.dependents, owner.uid, uid);
    if (namespace) join(this.namespaces, namespace, uid);
  }

  private remove(node: GraphNode): void {
    const { uid = "", namespace = "" } = node.metadata;
    this.nodes.delete(uid);
    for (const owner of ownersOf(node)) leave(this.dependents, owner.uid, uid);
    leave(this.namespaces, namespace, uid);
  }
}

export function ownersOf({ metadata }: KubeObject): readonly OwnerReference[] {
  return metadata.ownerReferences ?? [];
}

/** `apps/v1 Deployment`: what an owner reference calls a resource. */
export function kindKey({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string {
  // Versions of one group are the same objects.
  return `${apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : ""} ${kind}`;
}

/** Resources by what owner references call them. */
export function resourcesByKind(resources: readonly Resource<KubeObject>[]): ReadonlyMap<string, Resource<KubeObject>> {
  return new Map(resources.map((one) => [kindKey({ apiVersion: apiVersionOf(one), kind: one.kind }), one]));
}

function join(groups: Map<string, Set<string>>, group: string, uid: string): void {
  const known = groups.get(group);
  if (known === undefined) groups.set(group, new Set([uid]));
  else known.add(uid);
}

function leave(groups: Map<string, Set<string>>, group: string, uid: string): void {
  const known = groups.get(group);
  known?.delete(uid);
  if (known?.size === 0) groups.delete(group);
}

/** A client whose objects are cut to what the graph needs: all objects of all kinds are held in memory. */
function metadataOnly(
  api: Pick<KubeApi, "list" | "watch">,
  resource: Resource<KubeObject>,
): Pick<KubeApi, "list" | "watch"> {
  // The caller asks for nodes and gets nodes: `T` is GraphNode in the only use.
  const cut = <T>(object: T): T => nodeOf(object as unknown as KubeObject, resource) as unknown as T;
  return {
    list: async (of, query, options) => {
      const page = await api.list(of, query, options);
      return { ...page, items: page.items.map(cut) };
    },
    watch: async (of, query, options) => cutEvents(await api.watch(of, query, options), cut),
  };
}

async function* cutEvents<E extends { readonly type: string }>(
  events: AsyncIterable<E>,
  cut: <T>(object: T) => T,
): AsyncIterable<E> {
  for await (const event of events) yield "object" in event ? { ...event, object: cut(event.object) } : event;
}

function nodeOf({ metadata }: KubeObject, resource: Resource<KubeObject>): GraphNode {
  const { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp } = metadata;
  return {
    resource,
    metadata: {
      ...(name !== undefined && { name }),
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
      ...(ownerReferences !== undefined && { ownerReferences }),
      ...(finalizers !== undefined && { finalizers }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    },
  };
}
