import type { Abortable } from "../../lib/abort.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { Container, ContainerStatus, Pod } from "../../model/generated/types.ts";
import { allContainers, isStaticPod } from "../../model/pod-facts.ts";
import type { PodEvent } from "../../model/step.ts";
import type { EndedStep } from "../journal.ts";
import type { PoolDeps } from "../worker/pool-deps.ts";
import type { PodMetricsDeps } from "./pod-metrics.ts";
import { containerType } from "./pod-metrics.ts";

/** Declares what the pool counts; the answer is for it. */
export function poolCounters(metrics: Metrics): NonNullable<PoolDeps["counted"]> {
  const orphans = metrics.counter("kubelet_orphaned_runtime_pods_total", "Pods of the runtime that no source wanted.");
  const again = metrics.counter("kubelet_restarted_pods_total", "Pods that came back under their UID.", ["static"]);
  const room = metrics.counter("kubelet_preemptions", "Pods that were ended for critical ones.", ["preemption_signal"]);
  return {
    orphaned: () => orphans.inc(),
    restarted: (pod) => again.inc([isStaticPod(pod) ? "true" : ""]),
    preempted: (reason) => room.inc([reason.replace(/^OutOf/, "")]),
  };
}

/** Counts how containers, hooks, image volumes and users' ranges turned out. Work only when something happens. */
export function countOutcomes(deps: PodMetricsDeps, options: Abortable): void {
  countEnds(deps, options);
  countHooks(deps, options);
  countImageVolumes(deps, options);
  countUserNamespaces(deps, options);
}

/** Steps whose failure is one of the pod, as long as its container never ran in this sandbox. */
const STARTING: ReadonlySet<string> = new Set(["pull", "create", "start"]);

/** Pods with users of their own. Their users often fail only when a container is made, so that is an error too. */
function countUserNamespaces(deps: PodMetricsDeps, options: Abortable): void {
  const { metrics, journal, desired, pool } = deps;
  const pods = metrics.counter("kubelet_started_user_namespaced_pods_total", "Sandboxes with users of their own.");
  const errors = metrics.counter(
    "kubelet_started_user_namespaced_pods_errors_total",
    "Sandboxes with users of their own that could not be made, or whose containers could not be started.",
  );
  /** Containers that have not been started yet, by pod, while nothing failed. */
  const awaited = new Map<string, Set<string>>();
  const ended = ({ step, pod, container = "", outcome }: EndedStep): void => {
    const of = desired.get(pod.uid)?.pod;
    if (step === "sandbox" && of?.spec.hostUsers === false) {
      pods.inc();
      if (outcome === "failed") errors.inc();
      else awaited.set(pod.uid, new Set(allContainers(of).map(({ name }) => name)));
    }
    const left = awaited.get(pod.uid);
    if (left === undefined || !STARTING.has(step) || !left.has(container)) return;
    if (outcome === "failed") errors.inc();
    if (step === "start") left.delete(container);
    if (outcome === "failed" || left.size === 0) awaited.delete(pod.uid);
  };
  journal.onStep(ended, options);
  const changed = (uid: string): void => {
    if (pool.status(uid) === undefined) awaited.delete(uid);
  };
  pool.onStatus(changed, options);
}

/** Each instance that ended while this agent ran, once. */
function countEnds(deps: PodMetricsDeps, options: Abortable): void {
  const { metrics, pool, clock } = deps;
  const ended = metrics.counter("kubelet_terminated_containers_total", "Containers that ended.", [
    ...["container_type", "exit_code", "reason"],
  ]);
  const began = clock.now().wall;
  /** Ids that were counted, by pod; only those that its status still shows. */
  const counted = new Map<string, ReadonlySet<string>>();
  const changed = (uid: string): void => {
    const pod = podOf(deps, uid);
    const status = pool.status(uid);
    if (status === undefined) return void counted.delete(uid);
    const before = counted.get(uid);
    const shown = new Set<string>();
    const lists = [status.containerStatuses, status.initContainerStatuses, status.ephemeralContainerStatuses];
    for (const { name, end } of lists.flatMap((list) => (list ?? []).flatMap(endsOf))) {
      const { containerID = "", finishedAt = "", exitCode, reason = "" } = end;
      // Times of a status have whole seconds.
      if (containerID === "" || Date.parse(finishedAt) < began - 1000 || shown.has(containerID)) continue;
      shown.add(containerID);
      if (!before?.has(containerID)) ended.inc([containerType(pod, name), String(exitCode), reason]);
    }
    if (shown.size > 0) counted.set(uid, shown);
    else if (before !== undefined) counted.delete(uid);
  };
  pool.onStatus(changed, options);
}

function endsOf({ name, state, lastState }: ContainerStatus) {
  return [state?.terminated, lastState?.terminated].flatMap((end) => (end === undefined ? [] : [{ name, end }]));
}

function countHooks(deps: PodMetricsDeps, options: Abortable): void {
  const { metrics, journal } = deps;
  const fallbacks = metrics.counter(
    "kubelet_lifecycle_handler_http_fallbacks_total",
    "HTTPS hooks that were answered by plain HTTP and tried again so.",
  );
  const early = metrics.counter("kubelet_sleep_action_terminated_early_total", "Sleep hooks that were cut short.");
  const told = ({ reason }: PodEvent): void => {
    if (reason === "LifecycleHTTPFallback") fallbacks.inc();
  };
  journal.onEvent(told, options);
  const ended = ({ step, pod, container, outcome }: EndedStep): void => {
    if (step !== "hook" || outcome === "ok") return;
    const { preStop, postStart } = containerOf(podOf(deps, pod.uid), container)?.lifecycle ?? {};
    if (preStop?.sleep !== undefined || postStart?.sleep !== undefined) early.inc();
  };
  journal.onStep(ended, options);
}

function countImageVolumes({ metrics, journal, desired }: PodMetricsDeps, options: Abortable): void {
  const name = (what: string): string => `kubelet_image_volume_${what}_total`;
  const requested = metrics.counter(name("requested"), "Image volumes that containers were to have.");
  const mounted = metrics.counter(name("mounted_succeed"), "Image volumes that containers were made with.");
  const errors = metrics.counter(name("mounted_errors"), "Image volumes of containers that could not be made.");
  const ended = ({ step, pod, container, outcome }: EndedStep): void => {
    if (step !== "create") return;
    const of = desired.get(pod.uid)?.pod;
    const images = new Set((of?.spec.volumes ?? []).filter(({ image }) => image !== undefined).map((one) => one.name));
    const mounts = containerOf(of, container)?.volumeMounts ?? [];
    const count = mounts.filter((mount) => images.has(mount.name)).length;
    if (count === 0) return;
    requested.inc([], count);
    (outcome === "failed" ? errors : mounted).inc([], count);
  };
  journal.onStep(ended, options);
}

/** The pod as it is driven; one that is no longer wanted still has its worker. */
function podOf({ desired, pool }: PodMetricsDeps, uid: string): Pod | undefined {
  return desired.get(uid)?.pod ?? pool.worker(uid)?.pod;
}

function containerOf(pod: Pod | undefined, name: string | undefined): Container | undefined {
  return pod && allContainers(pod).find((container) => container.name === name);
}
