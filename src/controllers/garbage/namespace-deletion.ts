import {
  ApiError,
  EVENTS,
  type KubeObject,
  NAMESPACES,
  PODS,
  pathOf,
  type Resource,
} from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Namespace } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { Informer } from "../informers.ts";
import { Reconciler } from "../reconciler.ts";
import { timeText } from "../time-text.ts";
import { COLLECTED_RESOURCES } from "./collected-resources.ts";
import { withRemainingContent } from "./namespace-conditions.ts";
import type { GraphChange, GraphNode, ObjectGraph } from "./object-graph.ts";

const FINALIZER = "kubernetes";

/** Deletes what is in a namespace that is being deleted, pods first, and lets the namespace go when it is empty. */
export class NamespaceDeletion {
  private readonly namespaces: Informer<Namespace>;
  private readonly reconciler: Reconciler;

  constructor(
    private readonly deps: ControllerDeps,
    private readonly graph: ObjectGraph,
  ) {
    this.namespaces = deps.informers.of(NAMESPACES);
    this.reconciler = new Reconciler(deps, {
      name: "namespace deletion",
      reconcile: (name, options) => this.empty(name, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    this.namespaces.onChange(
      ({ kind, object }) => {
        if (kind !== "deleted" && isTerminating(object)) this.reconciler.wake(object.metadata.name ?? "");
      },
      { signal },
    );
    await this.reconciler.run(signal);
  }

  /** Looks again at a namespace whose content changed while it is being deleted. */
  onChange({ node, previous }: GraphChange): void {
    const changed = node ?? previous;
    const isNamespace = changed?.resource.plural === NAMESPACES.plural;
    const namespace = isNamespace ? changed.metadata.name : changed?.metadata.namespace;
    if (!namespace) return;
    const object = this.namespaces.get("", namespace);
    if (object !== undefined && isTerminating(object)) this.reconciler.wake(namespace);
  }

  private async empty(name: string, options: Abortable): Promise<undefined> {
    const namespace = this.namespaces.get("", name);
    if (namespace === undefined || !isTerminating(namespace) || !this.graph.isSynced) return undefined;
    if (!(namespace.spec?.finalizers ?? []).includes(FINALIZER)) return undefined;
    const content = this.graph.inNamespace(name);
    // What was deleted comes as changes of the graph.
    if (await this.deleteContent(name, content, options)) return undefined;
    if (content.length > 0) {
      await this.report(namespace, content, options);
      return undefined;
    }
    // Created in the moment before the deletion, and not in the graph yet: it comes as a change of the graph.
    if (!(await this.isEmpty(name, options))) return undefined;
    await this.deps.api.raw({ method: "DELETE", path: pathOf(EVENTS, { namespace: name }) }, options);
    await this.finalize(name, options);
    return undefined;
  }

  /** True if there was something to delete that is not being deleted yet. */
  private async deleteContent(name: string, content: readonly GraphNode[], options: Abortable): Promise<boolean> {
    const isPod = ({ resource }: GraphNode): boolean =>
      resource.plural === PODS.plural && resource.group === PODS.group;
    const pods = content.filter(isPod);
    // Pods need what is beside them until they have stopped.
    const now = (pods.length > 0 ? pods : content).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const resources = new Set<Resource<KubeObject>>(now.map(({ resource }) => resource));
    for (const resource of resources) {
      const body = JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background" });
      await this.deps.api.raw({ method: "DELETE", path: pathOf(resource, { namespace: name }), body }, options);
    }
    return now.length > 0;
  }

  private async isEmpty(namespace: string, options: Abortable): Promise<boolean> {
    for (const resource of COLLECTED_RESOURCES.filter(({ isNamespaced }) => isNamespaced)) {
      const { items } = await this.deps.api.list(resource, { namespace, limit: 1 }, options);
      if (items.length > 0) return false;
    }
    return true;
  }

  private async finalize(name: string, options: Abortable): Promise<void> {
    try {
      const { api } = this.deps;
      const fresh = await api.get(NAMESPACES, { name }, options);
      if (!isTerminating(fresh)) return;
      const finalizers = (fresh.spec?.finalizers ?? []).filter((finalizer) => finalizer !== FINALIZER);
      const body = JSON.stringify({
        ...fresh,
        apiVersion: "v1",
        kind: "Namespace",
        spec: { ...fresh.spec, finalizers },
      });
      await api.raw({ method: "PUT", path: pathOf(NAMESPACES, { name, subresource: "finalize" }), body }, options);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
    }
  }

  private async report(namespace: Namespace, left: readonly GraphNode[], options: Abortable): Promise<void> {
    const now = timeText(this.deps.clock.now().wall);
    const conditions = withRemainingContent(namespace.status?.conditions ?? [], left, now);
    if (conditions === namespace.status?.conditions) return;
    const { name = "" } = namespace.metadata;
    const object: Namespace = { ...namespace, status: { ...namespace.status, conditions } };
    this.namespaces.wrote(await this.deps.api.update(NAMESPACES, { name, subresource: "status", object }, options));
  }
}

function isTerminating({ metadata }: Namespace): boolean {
  return metadata.deletionTimestamp !== undefined;
}
