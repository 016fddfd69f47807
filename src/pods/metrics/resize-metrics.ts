import type { Abortable } from "../../lib/abort.ts";
import type { Pod, PodCondition, PodStatus } from "../../model/generated/types.ts";
import { allContainers } from "../../model/pod-facts.ts";
import { tryParseQuantity } from "../../model/quantity.ts";
import type { PodEvent } from "../../model/step.ts";
import type { PodMetricsDeps } from "./pod-metrics.ts";

/** Milliseconds, as in Kubernetes: from ten to ten minutes. */
const BUCKETS = [10, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000];

/** Counts changes of running pods' resources, from what the journal tells and what the statuses show. */
export function countResizes(
  { metrics, journal, pool, clock }: PodMetricsDeps & { readonly pool: { uids(): readonly string[] } },
  options: Abortable,
): void {
  const duration = metrics.histogram("kubelet_pod_resize_duration_milliseconds", "How long pods were resized.", {
    labels: ["success"],
    buckets: BUCKETS,
  });
  const infeasible = metrics.counter("kubelet_pod_infeasible_resizes_total", "Resizes that this node can never give.", [
    "reason_detail",
  ]);
  const accepted = metrics.counter(
    "kubelet_pod_deferred_accepted_resizes_total",
    "Resizes that had to wait for room and then got it.",
    ["retry_trigger"],
  );
  const statuses = (): PodStatus[] => pool.uids().flatMap((uid) => pool.status(uid) ?? []);
  metrics.gaugeFrom("kubelet_pod_pending_resizes", "Pods whose resize waits, by why.", {
    labels: ["reason"],
    values: () => pendingReasons(statuses()),
  });
  metrics.gaugeFrom("kubelet_pod_in_progress_resizes", "Pods that are being resized.", {
    values: () => [[[], statuses().filter((status) => condition(status, "PodResizeInProgress")).length]],
  });
  const since = new Map<string, number>();
  const deferred = new Set<string>();
  const told = ({ reason, message, pod: { uid } }: PodEvent): void => {
    const now = clock.now().mono;
    if (reason === "ResizeInfeasible") infeasible.inc([infeasibleDetail(message)]);
    else if (reason === "ResizeDeferred") deferred.add(uid);
    else if (reason === "ResizeStarted") {
      since.set(uid, now);
      // Every change of another pod makes it be tried again.
      if (deferred.delete(uid)) accepted.inc(["pod_updated"]);
    } else if (reason === "ResizeCompleted" || reason === "ResizeError") {
      const began = since.get(uid);
      if (began === undefined) return;
      duration.observe(now - began, [String(reason === "ResizeCompleted")]);
      if (reason === "ResizeCompleted") since.delete(uid);
    }
  };
  journal.onEvent(told, options);
  const gone = (uid: string): void => {
    if (pool.status(uid) !== undefined) return;
    since.delete(uid);
    deferred.delete(uid);
  };
  pool.onStatus(gone, options);
}

/** Why a resize is infeasible, by the words that Kubernetes has for its message and its metric. */
const DETAILS: readonly (readonly [string, string])[] = [
  ["containers with swap", "swap_limitation"],
  ["alongside CPU Manager policy", "guaranteed_pod_cpu_manager_static_policy"],
  ["alongside Memory Manager policy", "guaranteed_pod_memory_manager_static_policy"],
  ["InPlacePodLevelResourcesVerticalScaling is disabled", "plr_feature_gate_off"],
];

/** The label of an infeasible resize. Pure. */
export function infeasibleDetail(message: string): string {
  return DETAILS.find(([words]) => message.includes(words))?.[1] ?? "other";
}

/** How many statuses say that a resize waits, by the reason that they give. Pure. */
export function pendingReasons(statuses: readonly PodStatus[]): [[string], number][] {
  const counts = new Map<string, number>();
  for (const status of statuses) {
    const reason = condition(status, "PodResizePending")?.reason?.toLowerCase();
    if (reason !== undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].map(([reason, count]) => [[reason], count]);
}

function condition({ conditions = [] }: PodStatus, type: string): PodCondition | undefined {
  return conditions.find((one) => one.type === type && one.status === "True");
}

/** Counts which requests and limits of running pods were asked to change. */
export function countRequestedResizes({ metrics, desired, pool }: PodMetricsDeps, options: Abortable): void {
  const total = metrics.counter("kubelet_container_requested_resizes_total", "Changes of containers' resources.", [
    ...["resource", "requirement", "operation"],
  ]);
  /** The pods as they were looked at last; the same objects that the sources hold. */
  const seen = new Map<string, Pod>();
  const changed = (uid: string): void => {
    const pod = desired.get(uid)?.pod;
    const before = seen.get(uid);
    if (pod === undefined) return void seen.delete(uid);
    if (pod === before) return;
    seen.set(uid, pod);
    if (before !== undefined) for (const labels of resourceChanges(before, pod)) total.inc(labels);
  };
  pool.onStatus(changed, options);
}

/** `[resource, requirement, operation]` of each CPU or memory value that differs between two versions of a pod. Pure. */
export function resourceChanges(before: Pod, after: Pod): [string, string, string][] {
  return allContainers(after).flatMap(({ name, resources }) => {
    const old = allContainers(before).find((container) => container.name === name);
    if (old === undefined) return [];
    return (["requests", "limits"] as const).flatMap((requirement) =>
      ["cpu", "memory"].flatMap((resource): [string, string, string][] => {
        const operation = changeOf(old.resources?.[requirement]?.[resource], resources?.[requirement]?.[resource]);
        return operation === undefined ? [] : [[resource, requirement, operation]];
      }),
    );
  });
}

function changeOf(before: string | undefined, after: string | undefined): string | undefined {
  const [old, now] = [before, after].map((text) => (text === undefined ? undefined : tryParseQuantity(text)));
  if (old === undefined) return now === undefined ? undefined : "add";
  if (now === undefined) return "remove";
  if (old.nano === now.nano) return undefined;
  return now.nano > old.nano ? "increase" : "decrease";
}
