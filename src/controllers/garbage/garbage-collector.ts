import { ApiError, apiVersionOf, type KubeObject, type Resource } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Loop } from "../../lib/loop.ts";
import type { OwnerReference } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { RecordEvent } from "../event-sink.ts";
import { Reconciler } from "../reconciler.ts";
import {
  blockingDependents,
  FOREGROUND,
  isDeletingDependents,
  isOrphaning,
  ORPHAN,
  type OwnerState,
  planCollection,
} from "./collect.ts";
import { COLLECTED_RESOURCES } from "./collected-resources.ts";
import { NamespaceDeletion } from "./namespace-deletion.ts";
import { type GraphChange, type GraphNode, kindKey, ObjectGraph, ownersOf, resourcesByKind } from "./object-graph.ts";

/**
 * Deletes objects whose owners are gone, ends deletions in the foreground and those that leave dependents behind, and
 * empties namespaces that are being deleted.
 */
export function garbageCollectorController(deps: ControllerDeps): Loop {
  const collector = new GarbageCollector(deps);
  return { name: "garbage collector", run: (signal) => collector.run(signal) };
}

class GarbageCollector {
  private readonly graph: ObjectGraph;
  private readonly resources = resourcesByKind(COLLECTED_RESOURCES);
  private readonly reconciler: Reconciler;
  private readonly namespaces: NamespaceDeletion;
  private readonly record: RecordEvent;

  constructor(private readonly deps: ControllerDeps) {
    this.record = deps.events.recorder("garbage-collector-controller");
    this.graph = new ObjectGraph(deps, COLLECTED_RESOURCES);
    this.namespaces = new NamespaceDeletion(deps, this.graph);
    this.reconciler = new Reconciler(deps, {
      name: "garbage collector",
      reconcile: (uid, options) => this.collect(uid, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const onSynced = (): void => {
      for (const node of this.graph.all()) this.onChange({ node });
    };
    await Promise.all([
      this.graph.run({ onChange: (change) => this.onChange(change), onSynced }, { signal }),
      this.reconciler.run(signal),
      this.namespaces.run(signal),
    ]);
  }

  private onChange({ node, previous }: GraphChange): void {
    // Before all lists are complete, owners seem to be absent that are not.
    if (!this.graph.isSynced) return;
    this.namespaces.onChange({ ...(node && { node }), ...(previous && { previous }) });
    const known = node ?? previous;
    if (known === undefined) return;
    const { uid = "" } = known.metadata;
    if (node === undefined) for (const dependent of this.graph.dependentsOf(uid)) this.wake(dependent);
    else if (needsWork(node, previous)) {
      this.wake(node);
      if (isDeletingDependents(node)) for (const dependent of this.graph.dependentsOf(uid)) this.wake(dependent);
    }
    // An owner that waits for its dependents may go on.
    for (const owner of [...ownersOf(known), ...(previous ? ownersOf(previous) : [])]) {
      const found = this.graph.get(owner.uid);
      if (found !== undefined && isDeletingDependents(found)) this.wake(found);
    }
  }

  private wake({ metadata }: GraphNode): void {
    this.reconciler.wake(metadata.uid ?? "");
  }

  private async collect(uid: string, options: Abortable): Promise<undefined> {
    const node = this.graph.get(uid);
    if (node === undefined) return undefined;
    const dependents = this.graph.dependentsOf(uid);
    if (isOrphaning(node)) return this.orphan(node, dependents, options);
    if (isDeletingDependents(node)) {
      const blocking = blockingDependents(dependents, uid);
      if (blocking.length === 0) return this.removeFinalizer(node, FOREGROUND, options);
      for (const dependent of blocking) if (dependent.metadata.deletionTimestamp === undefined) this.wake(dependent);
    }
    const owners: { reference: OwnerReference; state: OwnerState }[] = [];
    for (const reference of ownersOf(node)) {
      owners.push({ reference, state: await this.stateOf(reference, node, options) });
    }
    const plan = planCollection({ node, owners, dependents });
    if (plan.kind === "forget") await this.forget(node, plan.uids, options);
    if (plan.kind === "delete") {
      if (plan.unblocks) await this.unblock(node, owners, options);
      await this.delete(node, plan.propagation, options);
    }
    return undefined;
  }

  /**
   * An owner that the graph does not have, or not in the namespace and under the name of the reference, is looked for in
   * the API as the reference describes it: the graph may be late.
   */
  private async stateOf(reference: OwnerReference, node: GraphNode, options: Abortable): Promise<OwnerState> {
    const { namespace = "" } = node.metadata;
    const known = this.graph.get(reference.uid);
    if (known !== undefined && isReachable(known, namespace)) {
      if (isDescribedBy(known, reference)) return isDeletingDependents(known) ? "waiting" : "solid";
    } else if (known !== undefined) this.reportNamespace(node, reference);
    const resource = this.resources.get(kindKey(reference));
    // A kind that is not served: nobody knows whether the owner is there.
    if (resource === undefined) return "solid";
    if (resource.isNamespaced && namespace === "") return "invalid";
    try {
      const at = { name: reference.name, ...(resource.isNamespaced && namespace && { namespace }) };
      const found = await this.deps.api.get(resource, at, options);
      return found.metadata.uid === reference.uid ? "solid" : "absent";
    } catch (error) {
      if (error instanceof ApiError && error.code === "NotFound") return "absent";
      throw error;
    }
  }

  private reportNamespace({ resource, metadata }: GraphNode, reference: OwnerReference): void {
    const { apiVersion, kind, name, uid } = reference;
    const { namespace = "" } = metadata;
    const owner = `[${apiVersion}/${kind}, namespace: ${namespace}, name: ${name}, uid: ${uid}]`;
    const message = `ownerRef ${owner} does not exist in namespace "${namespace}"`;
    this.record({ type: "Warning", reason: "OwnerRefInvalidNamespace", message, resource, object: { metadata } });
  }

  /** Takes the references to an owner from its dependents, which then live on, and lets the owner go. */
  private async orphan(node: GraphNode, dependents: readonly GraphNode[], options: Abortable): Promise<undefined> {
    for (const dependent of dependents) await this.forget(dependent, [node.metadata.uid ?? ""], options);
    return this.removeFinalizer(node, ORPHAN, options);
  }

  private async removeFinalizer({ resource, metadata }: GraphNode, name: string, options: Abortable) {
    await this.change({ resource, metadata }, options, (fresh) => {
      const finalizers = (fresh.metadata.finalizers ?? []).filter((finalizer) => finalizer !== name);
      return { finalizers };
    });
    return undefined;
  }

  private async forget(node: GraphNode, uids: readonly string[], options: Abortable): Promise<void> {
    await this.change(node, options, (fresh) => ({
      ownerReferences: ownersOf(fresh).filter(({ uid }) => !uids.includes(uid)),
    }));
  }

  private async unblock(
    node: GraphNode,
    owners: readonly { readonly reference: OwnerReference; readonly state: OwnerState }[],
    options: Abortable,
  ): Promise<void> {
    const waiting = owners.filter(({ state }) => state === "waiting").map(({ reference }) => reference.uid);
    await this.change(node, options, (fresh) => ({
      ownerReferences: ownersOf(fresh).map((reference) =>
        waiting.includes(reference.uid) ? { ...reference, blockOwnerDeletion: false } : reference,
      ),
    }));
  }

  /** Patches metadata of exactly the version that was read; an object that is gone or was replaced needs nothing. */
  private async change(
    { resource, metadata }: GraphNode,
    options: Abortable,
    patchOf: (fresh: KubeObject) => object,
  ): Promise<void> {
    const { name = "", namespace, uid } = metadata;
    const at = { name, ...(namespace && { namespace }) };
    try {
      const fresh = await this.deps.api.get<KubeObject>(resource, at, options);
      if (fresh.metadata.uid !== uid) return;
      const { resourceVersion } = fresh.metadata;
      const body = { metadata: { ...patchOf(fresh), uid, resourceVersion } };
      await this.deps.api.patch(resource, { ...at, type: "merge", body }, options);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
    }
  }

  private async delete(
    { resource, metadata }: GraphNode,
    propagation: "Background" | "Foreground" | "Orphan",
    options: Abortable,
  ): Promise<void> {
    const { name = "", namespace, uid = "" } = metadata;
    const at = { name, uid, propagation, ...(namespace && { namespace }) };
    try {
      // The graph may be late: an object that was released a moment ago lives on.
      const fresh = await this.deps.api.get<KubeObject>(resource, at, options);
      if (!hasSameOwners(fresh, { metadata })) return;
      await this.deps.api.delete(resource as Resource<unknown>, at, options);
    } catch (error) {
      if (!(error instanceof ApiError) || (error.code !== "NotFound" && error.code !== "Conflict")) throw error;
    }
  }
}

/** A cluster-scoped owner may be referred to from everywhere, any other only from its namespace. */
function isReachable({ metadata }: GraphNode, namespace: string): boolean {
  return !metadata.namespace || metadata.namespace === namespace;
}

function isDescribedBy({ resource, metadata }: GraphNode, reference: OwnerReference): boolean {
  const own = kindKey({ apiVersion: apiVersionOf(resource), kind: resource.kind });
  return metadata.name === reference.name && own === kindKey(reference);
}

function hasSameOwners(a: KubeObject, b: KubeObject): boolean {
  const uids = (object: KubeObject): string => JSON.stringify(ownersOf(object).map(({ uid }) => uid));
  return uids(a) === uids(b);
}

/** Whether a change of an object can ask for a collection: most are changes of its status. */
function needsWork(node: GraphNode, previous: GraphNode | undefined): boolean {
  const relevant = ({ metadata }: GraphNode): string =>
    JSON.stringify([metadata.ownerReferences, metadata.finalizers, metadata.deletionTimestamp]);
  if (ownersOf(node).length === 0 && !isDeletingDependents(node) && !isOrphaning(node)) return false;
  return previous === undefined || previous === node || relevant(node) !== relevant(previous);
}
