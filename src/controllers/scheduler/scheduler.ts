import { NODES, PODS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Loop } from "../../lib/loop.ts";
import type { Node, Pod, PodCondition } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { RecordEvent } from "../event-sink.ts";
import type { Informer } from "../informers.ts";
import { partsOf } from "../object-index.ts";
import { Reconciler } from "../reconciler.ts";
import { misfitsOf, unschedulableMessage } from "./fit.ts";

const SCHEDULER_NAME = "default-scheduler";

/** Gives pods without a node to the one there is, if they fit it. */
export function schedulerController(deps: ControllerDeps): Loop {
  const scheduler = new Scheduler(deps);
  return { name: "scheduler", run: (signal) => scheduler.run(signal) };
}

class Scheduler {
  private readonly pods: Informer<Pod>;
  private readonly nodes: Informer<Node>;
  private readonly record: RecordEvent;
  private readonly reconciler: Reconciler;
  /** Pods that were bound and that the informer still shows without a node. */
  private readonly assumed = new Map<string, string>();

  constructor(private readonly deps: ControllerDeps) {
    this.pods = deps.informers.of(PODS);
    this.nodes = deps.informers.of(NODES);
    this.record = deps.events.recorder(SCHEDULER_NAME);
    this.reconciler = new Reconciler(deps, {
      name: "scheduler",
      reconcile: (key, options) => this.schedule(key, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const options = { signal };
    this.pods.onChange(({ kind, object }) => {
      const uid = object.metadata.uid ?? "";
      if (kind === "deleted" || object.spec.nodeName) this.assumed.delete(uid);
      if (kind !== "deleted" && isWaiting(object)) this.reconciler.wake(keyOf(object));
      // A pod that is gone or has ended leaves room.
      else if (kind === "deleted" || isOver(object)) this.wakeAll();
    }, options);
    this.nodes.onChange((change) => {
      // A heartbeat leaves no room: each pod that waits would be looked at for nothing.
      const isSame = change.kind === "updated" && fitFacts(change.object) === fitFacts(change.previous);
      if (!isSame) this.wakeAll();
    }, options);
    await this.reconciler.run(signal);
  }

  private wakeAll(): void {
    for (const pod of this.pods.list()) if (isWaiting(pod)) this.reconciler.wake(keyOf(pod));
  }

  private async schedule(key: string, options: Abortable): Promise<undefined> {
    await Promise.all([this.pods.synced(options), this.nodes.synced(options)]);
    const { namespace, name } = partsOf(key);
    const pod = this.pods.get(namespace, name);
    if (pod === undefined || !isWaiting(pod) || this.assumed.has(pod.metadata.uid ?? "")) return undefined;
    const nodes = this.nodes.list();
    const misfits = nodes.map((node) => misfitsOf(pod, node, this.podsOf(node.metadata.name ?? "")));
    const chosen = nodes[misfits.findIndex((one) => one.length === 0)];
    if (chosen === undefined) await this.report(pod, unschedulableMessage(misfits), options);
    else await this.bind(pod, chosen.metadata.name ?? "", options);
    return undefined;
  }

  /** Pods that use a node, with those that were bound a moment ago. */
  private podsOf(nodeName: string): readonly Pod[] {
    return this.pods.list().filter((pod) => {
      const assigned = pod.spec.nodeName || this.assumed.get(pod.metadata.uid ?? "");
      return assigned === nodeName && !isOver(pod);
    });
  }

  private async bind(pod: Pod, nodeName: string, { signal }: Abortable): Promise<void> {
    const { namespace = "", name = "", uid = "" } = pod.metadata;
    this.assumed.set(uid, nodeName);
    const body = JSON.stringify({
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name, namespace, uid },
      target: { kind: "Node", name: nodeName },
    });
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/binding`;
    try {
      await this.deps.api.raw({ method: "POST", path, body }, { signal });
    } catch (error) {
      this.assumed.delete(uid);
      throw error;
    }
    const message = `Successfully assigned ${namespace}/${name} to ${nodeName}`;
    this.record({ type: "Normal", reason: "Scheduled", message, resource: PODS, object: pod });
  }

  /** Says in the pod's status why it waits, once for each reason. */
  private async report(pod: Pod, message: string, { signal }: Abortable): Promise<void> {
    const { namespace = "", name = "", uid = "", generation } = pod.metadata;
    const known = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
    if (known?.status === "False" && known.message === message) return;
    const now = `${new Date(this.deps.clock.now().wall).toISOString().slice(0, 19)}Z`;
    const condition: PodCondition = {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      message,
      lastTransitionTime: known?.status === "False" ? (known.lastTransitionTime ?? now) : now,
      ...(generation !== undefined && { observedGeneration: generation }),
    };
    const body = { metadata: { uid }, status: { conditions: [condition] } };
    const change = { namespace, name, type: "strategic", subresource: "status", body } as const;
    await this.deps.api.patch(PODS, change, { signal });
    this.record({ type: "Warning", reason: "FailedScheduling", message, resource: PODS, object: pod });
  }
}

function keyOf({ metadata }: Pod): string {
  return `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
}

/** What decides whether a pod fits a node, as a text. */
function fitFacts({ metadata, spec, status }: Node): string {
  const conditions = (status?.conditions ?? []).map(({ type, status: state }) => [type, state]);
  return JSON.stringify([metadata.labels, metadata.name, spec, status?.allocatable, status?.capacity, conditions]);
}

/** A pod that asks for a node of this scheduler. */
function isWaiting({ metadata, spec, status }: Pod): boolean {
  if (spec.nodeName || metadata.deletionTimestamp !== undefined || isOver({ status })) return false;
  return (spec.schedulerName ?? SCHEDULER_NAME) === SCHEDULER_NAME && (spec.schedulingGates ?? []).length === 0;
}

function isOver({ status }: { readonly status?: Pod["status"] | undefined }): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}
