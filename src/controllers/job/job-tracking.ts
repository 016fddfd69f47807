import { ApiError, JOBS, PODS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Job, JobCondition, JobStatus, Pod } from "../../model/generated/types.ts";
import { conditionOf } from "../conditions.ts";
import type { ControllerDeps } from "../controller.ts";
import type { Informer } from "../informers.ts";
import { isSameStatus } from "../status-comparison.ts";
import { timeText } from "../time-text.ts";
import { hasFailed, type JobAssessment, type JobFacts, type JobVerdict } from "./assess-job.ts";
import { judgeFailure } from "./failure-policy.ts";
import { formatIndexes } from "./index-set.ts";
import { indexOf, isIndexed, isTracked, TRACKING_FINALIZER } from "./job-pods.ts";

/** As many pods are counted in one write, as in Kubernetes. */
const MOST_UNCOUNTED = 500;

export interface Tracking {
  readonly facts: JobFacts;
  readonly assessment: JobAssessment;
  /** The status with everything but what pods have ended. */
  readonly status: JobStatus;
  readonly verdict: JobVerdict | undefined;
  readonly terminating: number;
}

/**
 * Counts pods that have ended exactly once, whatever is lost in between: their UIDs are written to the status, then
 * their finalizer is removed, then they are counted.
 */
export class JobTracking {
  private readonly jobs: Informer<Job>;
  private readonly pods: Informer<Pod>;

  constructor(private readonly deps: ControllerDeps) {
    this.jobs = deps.informers.of(JOBS);
    this.pods = deps.informers.of(PODS);
  }

  /** Resolves with the job as it is then; `onFlush` is called once what has ended is in the status. */
  async track(tracking: Tracking, onFlush: () => void, options: Abortable): Promise<Job> {
    const { facts, verdict } = tracking;
    const now = timeText(facts.nowMs);
    const withFinalizer = new Set(facts.pods.filter(isTracked).map(({ metadata }) => metadata.uid ?? ""));
    const { status, ended } = collectEnded({ ...tracking, status: countedOff(tracking.status, withFinalizer) });
    const flushed = withVerdict(status, verdict, now);
    let job = await this.write(facts.job, flushed, options);
    onFlush();
    for (const pod of ended) {
      await this.release(pod, options);
      withFinalizer.delete(pod.metadata.uid ?? "");
    }
    const counted = countedOff(job.status ?? {}, withFinalizer);
    const isAll = ended.length < MOST_UNCOUNTED;
    const final = isAll ? withEnd(counted, { verdict, terminating: tracking.terminating, now }) : counted;
    job = await this.write(job, final, options);
    return job;
  }

  /** Removes the finalizer that keeps a pod until it is counted. */
  async release(pod: Pod, options: Abortable): Promise<void> {
    const { namespace = "", name = "", uid } = pod.metadata;
    if (!isTracked(pod)) return;
    const body = { metadata: { uid, "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER] } };
    try {
      const change = { namespace, name, type: "strategic", body } as const;
      this.pods.wrote(await this.deps.api.patch<Pod>(PODS, change, options));
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
    }
  }

  private async write(job: Job, status: JobStatus, options: Abortable): Promise<Job> {
    if (isSameStatus(job.status, status)) return job;
    const { namespace = "", name = "" } = job.metadata;
    const change = { namespace, name, subresource: "status", object: { ...job, status } } as const;
    const updated = await this.deps.api.update(JOBS, change, options);
    this.jobs.wrote(updated);
    return updated;
  }
}

/** Counts pods that were noted and have no finalizer any more, or are gone. Pure. */
function countedOff(status: JobStatus, withFinalizer: ReadonlySet<string>): JobStatus {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  const left = (uids: readonly string[]): readonly string[] => uids.filter((uid) => withFinalizer.has(uid));
  const [leftSucceeded, leftFailed] = [left(succeeded), left(failed)];
  return {
    ...status,
    succeeded: (status.succeeded ?? 0) + succeeded.length - leftSucceeded.length,
    failed: (status.failed ?? 0) + failed.length - leftFailed.length,
    uncountedTerminatedPods: {
      ...(leftSucceeded.length > 0 && { succeeded: leftSucceeded }),
      ...(leftFailed.length > 0 && { failed: leftFailed }),
    },
  };
}

/** Notes pods that have ended in the status. Pure. */
function collectEnded({ facts, assessment, status, verdict }: Tracking): { status: JobStatus; ended: readonly Pod[] } {
  const { job } = facts;
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  const [newSucceeded, newFailed, ended]: [string[], string[], Pod[]] = [[], [], []];
  const indexes = new Set(assessment.storedIndexes);
  const completions = job.spec.completions ?? 0;
  for (const pod of facts.pods) {
    if (!isTracked(pod) || !mayRelease(pod, { facts, assessment, verdict })) continue;
    if (ended.length >= MOST_UNCOUNTED) break;
    ended.push(pod);
    const { uid = "" } = pod.metadata;
    const index = indexOf(pod);
    const isValid = !isIndexed(job) || (index !== undefined && index < completions);
    if (pod.status?.phase === "Succeeded" && !failed.includes(uid)) {
      if (isIndexed(job) && index !== undefined && isValid) indexes.add(index);
      else if (!isIndexed(job) && !succeeded.includes(uid)) newSucceeded.push(uid);
    } else if (hasFailed(pod, facts) || verdict?.type === "FailureTarget") {
      const isNew = !failed.includes(uid) && isValid;
      if (isNew && judgeFailure(job.spec.podFailurePolicy, pod).counts) newFailed.push(uid);
    }
  }
  const [allSucceeded, allFailed] = [
    [...succeeded, ...newSucceeded],
    [...failed, ...newFailed],
  ];
  const uncountedTerminatedPods = {
    ...(allSucceeded.length > 0 && { succeeded: allSucceeded }),
    ...(allFailed.length > 0 && { failed: allFailed }),
  };
  const indexed = isIndexed(job) && {
    succeeded: indexes.size,
    ...(indexes.size > 0 && { completedIndexes: formatIndexes(indexes) }),
    ...(assessment.failedIndexes && { failedIndexes: formatIndexes(assessment.failedIndexes) }),
  };
  return { status: { ...status, ...indexed, uncountedTerminatedPods }, ended };
}

function mayRelease(
  pod: Pod,
  { facts, assessment, verdict }: Pick<Tracking, "facts" | "assessment" | "verdict">,
): boolean {
  if (facts.job.metadata.deletionTimestamp !== undefined || verdict !== undefined) return true;
  if (pod.status?.phase === "Succeeded") return true;
  if (!hasFailed(pod, facts)) return false;
  const index = indexOf(pod);
  return index === undefined || assessment.delayed.get(index) !== pod;
}

function withVerdict(status: JobStatus, verdict: JobVerdict | undefined, now: string): JobStatus {
  if (verdict === undefined || conditionOf(status.conditions, verdict.type) !== undefined) return status;
  return { ...status, conditions: [...(status.conditions ?? []), jobCondition(verdict, now)] };
}

/** The final condition, once all pods have ended and are counted. Pure. */
function withEnd(
  status: JobStatus,
  { verdict, terminating, now }: { verdict: JobVerdict | undefined; terminating: number; now: string },
): JobStatus {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  if (verdict === undefined || terminating > 0 || succeeded.length + failed.length > 0) return status;
  const isComplete = verdict.type === "SuccessCriteriaMet";
  const condition = jobCondition({ ...verdict, type: isComplete ? "Complete" : "Failed" }, now);
  return {
    ...status,
    conditions: [...(status.conditions ?? []), condition],
    ...(isComplete && { completionTime: now }),
  };
}

/** A condition that is true. */
export function jobCondition(
  { type, reason, message }: { readonly type: string; readonly reason: string; readonly message: string },
  now: string,
): JobCondition {
  return { type, status: "True", lastProbeTime: now, lastTransitionTime: now, reason, message };
}
