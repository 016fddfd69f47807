import type { Job, Pod } from "../../model/generated/types.ts";
import { conditionOf } from "../conditions.ts";
import { isReady, isTerminal } from "../pod-state.ts";
import { timeOf } from "../time-text.ts";
import { judgeFailure } from "./failure-policy.ts";
import { parseIndexes } from "./index-set.ts";
import { failuresBefore, finishedAt, indexOf, isIndexed, isTracked, replacesFailedOnly } from "./job-pods.ts";
import { matchedSuccessRule } from "./success-policy.ts";

/** Why a job ends: `FailureTarget` or `SuccessCriteriaMet`, which becomes final when its pods have ended. */
export interface JobVerdict {
  readonly type: "FailureTarget" | "SuccessCriteriaMet";
  readonly reason: string;
  readonly message: string;
}

/** How a job stands. */
export interface JobAssessment {
  readonly pods: readonly Pod[];
  /** Pods that run or will. */
  readonly active: readonly Pod[];
  /** Pods that are being deleted and have not ended. */
  readonly terminating: readonly Pod[];
  readonly ready: number;
  /** Pods that have ended and are not in the status yet. */
  readonly newSucceeded: readonly Pod[];
  readonly newFailed: readonly Pod[];
  readonly succeeded: number;
  readonly failed: number;
  /** Of an Indexed job: as the status has them, and with those that have ended since. */
  readonly storedIndexes: ReadonlySet<number>;
  readonly succeededIndexes: ReadonlySet<number>;
  /** Of a job with a limit for each index. */
  readonly failedIndexes: ReadonlySet<number> | undefined;
  /** Failed pods by index that are kept until their successor knows how often the index failed. */
  readonly delayed: ReadonlyMap<number, Pod>;
  readonly verdict: JobVerdict | undefined;
}

export interface JobFacts {
  readonly job: Job;
  readonly pods: readonly Pod[];
  isDeleting(pod: Pod): boolean;
  readonly nowMs: number;
}

/** Whether a pod counts as failed: one that is deleted before it could end does, unless only failed pods are replaced. */
export function hasFailed(pod: Pod, { job, isDeleting }: JobFacts): boolean {
  if (pod.status?.phase === "Failed") return true;
  return !replacesFailedOnly(job) && isDeleting(pod) && pod.status?.phase !== "Succeeded";
}

export function isSuspended({ spec }: Job): boolean {
  return spec.suspend === true;
}

/** How a job stands and whether it is to end. Pure. */
export function assessJob(facts: JobFacts): JobAssessment {
  const { job, pods, isDeleting } = facts;
  const { spec, status } = job;
  const uncounted = status?.uncountedTerminatedPods ?? {};
  const uids = new Set([...(uncounted.succeeded ?? []), ...(uncounted.failed ?? [])]);
  const fresh = pods.filter((pod) => isTracked(pod) && !uids.has(pod.metadata.uid ?? ""));
  const newSucceeded = fresh.filter((pod) => pod.status?.phase === "Succeeded");
  const newFailed = fresh.filter((pod) => hasFailed(pod, facts));
  const counted = newFailed.filter((pod) => judgeFailure(spec.podFailurePolicy, pod).counts);
  const active = pods.filter((pod) => !isTerminal(pod) && !isDeleting(pod));
  const completions = spec.completions ?? 0;
  const storedIndexes = parseIndexes(status?.completedIndexes, completions);
  const succeededIndexes = new Set([...storedIndexes, ...validIndexes(newSucceeded, completions)]);
  const failedIndexes = spec.backoffLimitPerIndex === undefined ? undefined : failedIndexesOf(facts, completions);
  const base = {
    pods,
    active,
    terminating: pods.filter((pod) => !isTerminal(pod) && isDeleting(pod)),
    ready: active.filter(isReady).length,
    newSucceeded,
    newFailed,
    succeeded: isIndexed(job)
      ? succeededIndexes.size
      : (status?.succeeded ?? 0) + newSucceeded.length + (uncounted.succeeded ?? []).length,
    failed: (status?.failed ?? 0) + counted.length + (uncounted.failed ?? []).length,
    storedIndexes,
    succeededIndexes,
    failedIndexes,
  };
  const done = new Set([...succeededIndexes, ...(failedIndexes ?? []), ...validIndexes(active, completions)]);
  const delayed = failedIndexes === undefined ? new Map<number, Pod>() : delayedPods(newFailed, done, completions);
  return { ...base, delayed, verdict: verdictOf(facts, base) };
}

function validIndexes(pods: readonly Pod[], below: number): readonly number[] {
  return pods.map(indexOf).filter((index): index is number => index !== undefined && index < below);
}

function failedIndexesOf(facts: JobFacts, completions: number): ReadonlySet<number> {
  const { spec, status } = facts.job;
  const failed = facts.pods.filter((pod) => {
    if (!isTracked(pod) || !hasFailed(pod, facts)) return false;
    const { action, counts } = judgeFailure(spec.podFailurePolicy, pod);
    return action === "FailIndex" || (counts && failuresBefore(pod, "counted") >= (spec.backoffLimitPerIndex ?? 0));
  });
  return new Set([...parseIndexes(status?.failedIndexes, completions), ...validIndexes(failed, completions)]);
}

function delayedPods(failed: readonly Pod[], done: ReadonlySet<number>, completions: number): ReadonlyMap<number, Pod> {
  const kept = new Map<number, Pod>();
  for (const pod of failed) {
    const index = indexOf(pod);
    if (index === undefined || index >= completions || done.has(index)) continue;
    const known = kept.get(index);
    const isLater = known === undefined || failuresBefore(known, "all") <= failuresBefore(pod, "all");
    if (isLater) kept.set(index, pod);
  }
  return kept;
}

type Counts = Pick<JobAssessment, "failed" | "newFailed" | "pods" | "succeededIndexes" | "failedIndexes">;

function verdictOf(facts: JobFacts, counts: Counts): JobVerdict | undefined {
  const { job } = facts;
  for (const type of ["SuccessCriteriaMet", "FailureTarget"] as const) {
    const known = conditionOf(job.status?.conditions, type);
    if (known?.status === "True") return { type, reason: known.reason ?? "", message: known.message ?? "" };
  }
  const fails = (reason: string, message: string): JobVerdict => ({ type: "FailureTarget", reason, message });
  const policy = counts.newFailed
    .map((pod) => judgeFailure(job.spec.podFailurePolicy, pod).message)
    .find((text) => text);
  if (policy !== undefined) return fails("PodFailurePolicy", policy);
  if (counts.failed > (job.spec.backoffLimit ?? 6) || restartsTooOften(job, counts.pods)) {
    return fails("BackoffLimitExceeded", "Job has reached the specified backoff limit");
  }
  if (deadlineMs(facts) === 0) return fails("DeadlineExceeded", "Job was active longer than specified deadline");
  return isIndexed(job) ? indexedVerdict(job, counts, fails) : undefined;
}

function indexedVerdict(
  { spec }: Job,
  { succeededIndexes, failedIndexes }: Counts,
  fails: (reason: string, message: string) => JobVerdict,
): JobVerdict | undefined {
  const completions = spec.completions ?? 0;
  const failed = failedIndexes?.size ?? 0;
  if (spec.maxFailedIndexes !== undefined && failed > spec.maxFailedIndexes) {
    const message = "Job has exceeded the specified maximal number of failed indexes";
    return fails("MaxFailedIndexesExceeded", message);
  }
  if (failed > 0 && failed + succeededIndexes.size >= completions)
    return fails("FailedIndexes", "Job has failed indexes");
  const rule = matchedSuccessRule(spec.successPolicy, succeededIndexes, completions);
  if (rule === undefined) return undefined;
  return { type: "SuccessCriteriaMet", reason: "SuccessPolicy", message: `Matched rules at index ${rule}` };
}

function restartsTooOften({ spec }: Job, pods: readonly Pod[]): boolean {
  if (spec.template.spec?.restartPolicy !== "OnFailure") return false;
  const limit = spec.backoffLimit ?? 6;
  const living = pods.filter(({ status }) => status?.phase === "Running" || status?.phase === "Pending");
  const restarts = living
    .flatMap(({ status }) => [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])])
    .reduce((sum, { restartCount }) => sum + restartCount, 0);
  return limit === 0 ? restarts > 0 : restarts >= limit;
}

/** How long a job may still run, in milliseconds; undefined without a limit. Pure. */
export function deadlineMs({ job, nowMs }: Pick<JobFacts, "job" | "nowMs">): number | undefined {
  const { activeDeadlineSeconds } = job.spec;
  const start = timeOf(job.status?.startTime);
  if (activeDeadlineSeconds === undefined || start === undefined || isSuspended(job)) return undefined;
  return Math.max(0, start + activeDeadlineSeconds * 1000 - nowMs);
}

/** How many failures there were since the last success, and when the last was. */
export interface FailureRecord {
  readonly failures: number;
  readonly lastMs: number;
}

const FIRST_DELAY_MS = 10_000;
const LONGEST_DELAY_MS = 600_000;

/** The record with what has ended since. Pure. */
export function nextRecord(
  known: FailureRecord | undefined,
  succeeded: readonly Pod[],
  failed: readonly Pod[],
): FailureRecord | undefined {
  const ends = failed.map(finishedAt);
  if (succeeded.length === 0) {
    if (ends.length === 0) return known;
    return { failures: (known?.failures ?? 0) + ends.length, lastMs: Math.max(...ends) };
  }
  const lastSuccess = Math.max(...succeeded.map(finishedAt));
  const later = ends.filter((at) => at > lastSuccess);
  return later.length === 0 ? undefined : { failures: later.length, lastMs: Math.max(...later) };
}

/** How long the next pod has to wait, in milliseconds: 10 s, 20 s, 40 s … up to 10 minutes after a failure. Pure. */
export function retryDelayMs(record: FailureRecord | undefined, nowMs: number): number {
  if (record === undefined || record.failures === 0) return 0;
  const delay = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (record.failures - 1));
  return Math.max(0, record.lastMs + delay - nowMs);
}
