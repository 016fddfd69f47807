import type { Span, Tracer } from "../../lib/tracer.ts";
import type { Pod, PodStatus } from "../../model/generated/types.ts";
import type { PodIdentity } from "../../model/step.ts";
import { areAllRunning } from "../metrics/start-times.ts";
import { isTerminalPhase } from "../status/derive.ts";
import type { Lifecycle, WorkerStep } from "./lifecycle.ts";
import type { SyncOperation } from "./parts.ts";

/** Kubernetes' names for the passes of a worker; others have no span. */
const NAMES: Readonly<Partial<Record<WorkerStep, string>>> = {
  sync: "syncPod",
  stop: "syncTerminatingPod",
  remove: "syncTerminatedPod",
};

/**
 * The spans of one worker: each of its passes as in Kubernetes, with the steps of the journal and the calls to the runtime
 * inside. All passes until the pod's containers run are in one trace, the span `startPod`. Without a tracer it does
 * nothing; a pass that did nothing is not exported.
 */
export class PodTrace {
  private start: Span | undefined;
  private readonly attributes: Readonly<Record<string, string>>;

  constructor(
    private readonly tracer: Tracer | undefined,
    { uid, name, namespace }: PodIdentity,
  ) {
    this.attributes = {
      "k8s.pod.uid": uid,
      "k8s.pod": `${namespace}/${name}`,
      "k8s.pod.name": name,
      "k8s.namespace.name": namespace,
    };
    const { attributes } = this;
    this.start = tracer?.begin("startPod", { parent: undefined, attributes, isOptional: true });
  }

  /** Runs one pass of the worker in its span. */
  pass<T>(step: WorkerStep, operation: SyncOperation, work: () => Promise<T>): Promise<T> {
    const name = NAMES[step];
    if (this.tracer === undefined || name === undefined) return work();
    const attributes = step === "sync" ? { ...this.attributes, "k8s.pod.update_type": operation } : this.attributes;
    const parent = step === "sync" ? this.start : undefined;
    return this.tracer.run(this.tracer.begin(name, { parent, attributes, isOptional: true }), work);
  }

  /** Called after each pass: the start is over once all containers run, or never will. */
  passed(pod: Pod, { stop }: Lifecycle, status: PodStatus | undefined): void {
    if (this.start === undefined) return;
    const hasFailed = stop !== undefined || isTerminalPhase(status?.phase);
    if (!hasFailed && (status === undefined || !areAllRunning(pod, status))) return;
    this.start.end({ attributes: { "k8s.pod.phase": status?.phase ?? "Unknown" } });
    this.start = undefined;
  }
}
