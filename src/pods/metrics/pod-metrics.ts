import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { PodEvent, PodStep } from "../../model/step.ts";
import { RejectionError } from "../admission/rejection-error.ts";
import { ConfigError } from "../config/config-error.ts";
import type { DesiredPods } from "../desired.ts";
import type { EndedStep, Journal } from "../journal.ts";
import type { WorkerPool } from "../worker/pool.ts";
import type { PoolDeps } from "../worker/pool-deps.ts";
import { areAllRunning, startTimes } from "./start-times.ts";

/** Seconds, as in Kubernetes: a start may take an hour. */
const START_BUCKETS = [
  ...[0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180],
  ...[240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600],
];

export interface PodMetricsDeps {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly journal: Journal;
  readonly desired: Pick<DesiredPods, "get">;
  readonly pool: Pick<WorkerPool, "status" | "onStatus" | "worker">;
}

/** Declares how long workers take; the answer is for the pool. */
export function workerMetrics(metrics: Metrics): NonNullable<PoolDeps["measured"]> {
  const duration = metrics.histogram("kubelet_pod_worker_duration_seconds", "How long a worker took for a pod.", [
    "operation_type",
  ]);
  return (operation, tookMs) => duration.observe(tookMs / 1000, [operation]);
}

/** Counts what the journal tells of pods and their starts. Work only when a step ends or a status changes. */
export function countPods(deps: PodMetricsDeps, options: Abortable): void {
  countSteps(deps, options);
  measureStarts(deps, options);
}

function countSteps({ metrics, journal, desired, clock }: PodMetricsDeps, options: Abortable): void {
  const pods = metrics.counter("kubelet_started_pods_total", "Sandboxes that were to be made.");
  const podErrors = metrics.counter("kubelet_started_pods_errors_total", "Sandboxes that could not be made.");
  const type = "container_type";
  const total = metrics.counter("kubelet_started_containers_total", "Containers that were to be started.", [type]);
  const errors = metrics.counter("kubelet_started_containers_errors_total", "Containers that could not be started.", [
    ...[type, "code"],
  ]);
  const rejected = metrics.counter(
    "kubelet_admission_rejections_total",
    "Number of pods that admission rejected, by reason.",
    ["reason"],
  );
  const perPod = metrics.histogram("kubelet_containers_per_pod_count", "Containers of the pods that were admitted.", {
    buckets: [1, 2, 4, 8, 16],
  });
  const worker = metrics.histogram("kubelet_pod_worker_start_duration_seconds", "From seeing a pod to working on it.");
  const ofContainer = (step: EndedStep, code: string): void => {
    const kind = containerType(desired.get(step.pod.uid)?.pod, step.container ?? "");
    total.inc([kind]);
    if (step.outcome === "failed") errors.inc([kind, code]);
  };
  const count = (step: EndedStep): void => {
    const isFailed = step.outcome === "failed";
    if (step.step === "sandbox") {
      pods.inc();
      if (isFailed) podErrors.inc();
    } else if (step.step === "start") ofContainer(step, "RunContainerError");
    else if (step.step === "create" && isFailed) {
      ofContainer(step, step.error instanceof ConfigError ? "CreateContainerConfigError" : "CreateContainerError");
    } else if (step.step === "pull" && isFailed) ofContainer(step, "ErrImagePull");
    else if (step.step === "admitted" && step.error instanceof RejectionError)
      rejected.inc([rejectionLabel(step.error.reason)]);
    else if (step.step === "admitted" && !isFailed) {
      const wanted = desired.get(step.pod.uid);
      if (wanted === undefined) return;
      perPod.observe(wanted.pod.spec.containers.length);
      worker.observe(Math.max(0, clock.now().wall - wanted.seenAt) / 1000);
    }
  };
  journal.onStep(count, options);
  // A pod without room for its volumes is rejected while it waits for them, not at admission.
  const told = ({ reason }: PodEvent): void => {
    if (reason === "VolumeAttachmentLimitExceeded") rejected.inc([rejectionLabel(reason)]);
  };
  journal.onEvent(told, options);
}

/** The reasons of rejections that have a label of their own, as in Kubernetes. */
const REJECTION_REASONS: ReadonlySet<string> = new Set([
  ...["AppArmor", "Evicted", "InvalidNodeInfo", "NodeShutdown", "PodFeatureUnsupported", "PodOSNotSupported"],
  "PodLevelResourcesNotSupported",
  ...["PodOSSelectorNodeLabelDoesNotMatch", "SupplementalGroupsPolicyNotSupported", "SysctlForbidden"],
  ...["TopologyAffinityError", "UnexpectedAdmissionError", "VolumeAttachmentLimitExceeded"],
  ...["OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods"],
]);

/** The label of a rejection: names of resources, which pods choose, are not part of it. Pure. */
export function rejectionLabel(reason: string): string {
  if (REJECTION_REASONS.has(reason)) return reason;
  return reason.startsWith("OutOf") ? "OutOfExtendedResources" : "Other";
}

/** Kubernetes' word for the list of a pod that a container is in. Pure. */
export function containerType(pod: Pod | undefined, name: string): string {
  if (pod?.spec.initContainers?.some((one) => one.name === name)) return "init_container";
  if (pod?.spec.ephemeralContainers?.some((one) => one.name === name)) return "ephemeral_container";
  return "container";
}

function measureStarts({ metrics, journal, desired, pool, clock }: PodMetricsDeps, options: Abortable): void {
  const start = (name: string, help: string) => metrics.histogram(name, help, { buckets: START_BUCKETS });
  const seen = start("kubelet_pod_start_duration_seconds", "From seeing a pod to its phase Running.");
  const sli = start(
    "kubelet_pod_start_sli_duration_seconds",
    "From the creation of a pod without lasting volumes to all its containers running, without pulls and init containers.",
  );
  const whole = start(
    "kubelet_pod_start_total_duration_seconds",
    "From the creation of a pod to its containers running.",
  );
  /** Pods that this agent saw before they ran, and for how long that is to be measured: both, or only until all run. */
  const starting = new Map<string, "phase" | "containers">();
  const changed = (uid: string): void => {
    const wanted = desired.get(uid);
    const status = pool.status(uid);
    if (wanted === undefined || status === undefined) return void starting.delete(uid);
    if (status.phase === "Pending") return void starting.set(uid, "phase");
    const stage = starting.get(uid);
    if (stage === undefined) return;
    if (status.phase !== "Running") return void starting.delete(uid);
    const now = clock.now().wall;
    if (stage === "phase") seen.observe(Math.max(0, now - wanted.seenAt) / 1000);
    starting.set(uid, "containers");
    if (!areAllRunning(wanted.pod, status)) return;
    starting.delete(uid);
    const steps: readonly PodStep[] = journal.find(uid)?.history ?? [];
    const times = startTimes(wanted.pod, { status, steps, now });
    if (times === undefined) return;
    whole.observe(times.totalMs / 1000);
    if (times.sliMs !== undefined) sli.observe(times.sliMs / 1000);
  };
  pool.onStatus(changed, options);
}
