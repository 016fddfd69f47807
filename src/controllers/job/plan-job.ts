import type { Job, Pod } from "../../model/generated/types.ts";
import { deletionOrder } from "../replicaset/scale-down.ts";
import { type FailureRecord, isSuspended, type JobAssessment, retryDelayMs } from "./assess-job.ts";
import { failuresBefore, finishedAt, indexOf, isIndexed, replacesFailedOnly } from "./job-pods.ts";

/** Pods that are created or deleted at once, as in Kubernetes. */
const MOST_AT_ONCE = 500;

/** What a job that goes on is to do now. */
export interface JobPlan {
  readonly deletions: readonly Pod[];
  /** The index of each pod to create; undefined for pods without one. */
  readonly creations: readonly (number | undefined)[];
  /** When pods that had to wait may be created. */
  readonly afterMs?: number;
}

export interface PlanFacts {
  readonly job: Job;
  readonly assessment: JobAssessment;
  readonly record: FailureRecord | undefined;
  readonly nowMs: number;
}

/** How many pods are to be created or deleted, and which. Pure. */
export function planJob(facts: PlanFacts): JobPlan {
  const { job, assessment, record, nowMs } = facts;
  const { active } = assessment;
  if (isSuspended(job)) return { deletions: active, creations: [] };
  const wanted = wantedActive(job, assessment);
  const deletions = surplus(facts, Math.max(0, active.length - wanted)).slice(0, MOST_AT_ONCE);
  if (deletions.length > 0) return { deletions, creations: [] };
  const terminating = replacesFailedOnly(job) ? assessment.terminating.length : 0;
  const missing = Math.min(wanted - terminating - active.length, MOST_AT_ONCE);
  if (missing <= 0) return { deletions, creations: [] };
  if (job.spec.backoffLimitPerIndex !== undefined) return planIndependent(facts, missing);
  const afterMs = retryDelayMs(record, nowMs);
  if (afterMs > 0) return { deletions, creations: [], afterMs };
  const creations = isIndexed(job) ? pendingIndexes(facts, missing) : Array.from({ length: missing }, () => undefined);
  return { deletions, creations };
}

function wantedActive({ spec }: Job, { succeeded, active }: JobAssessment): number {
  const parallelism = spec.parallelism ?? 1;
  if (spec.completions === undefined) return succeeded > 0 ? active.length : parallelism;
  return Math.max(0, Math.min(spec.completions - succeeded, parallelism));
}

/** Pods of the same index or of none go, and then as many as are too many. */
function surplus({ job, assessment, nowMs }: PlanFacts, least: number): readonly Pod[] {
  const order = deletionOrder(assessment.active, nowMs);
  if (!isIndexed(job)) return order.slice(0, least);
  const seen = new Set<number>();
  const twice = [...order].reverse().filter((pod) => {
    const index = indexOf(pod);
    if (index === undefined || index >= (job.spec.completions ?? 0) || seen.has(index)) return true;
    seen.add(index);
    return false;
  });
  const others = order.filter((pod) => !twice.includes(pod));
  return [...twice, ...others.slice(0, Math.max(0, least - twice.length))];
}

/** The lowest indexes that are neither done nor running. */
function pendingIndexes({ job, assessment }: PlanFacts, count: number): readonly number[] {
  const { active, terminating, succeededIndexes, failedIndexes = new Set<number>() } = assessment;
  const running = new Set([...active, ...(replacesFailedOnly(job) ? terminating : [])].map(indexOf));
  const found: number[] = [];
  for (let index = 0; index < (job.spec.completions ?? 0) && found.length < count; index++) {
    if (!running.has(index) && !succeededIndexes.has(index) && !failedIndexes.has(index)) found.push(index);
  }
  return found;
}

/** With a limit for each index, each waits for its own failures. */
function planIndependent(facts: PlanFacts, missing: number): JobPlan {
  const { assessment, nowMs } = facts;
  const waits = pendingIndexes(facts, missing).map((index) => {
    const failed = assessment.delayed.get(index);
    const record = failed && { failures: failuresBefore(failed, "all") + 1, lastMs: finishedAt(failed) };
    return { index, waitMs: retryDelayMs(record, nowMs) };
  });
  const creations = waits.filter(({ waitMs }) => waitMs === 0).map(({ index }) => index);
  const afterMs = Math.min(...waits.filter(({ waitMs }) => waitMs > 0).map(({ waitMs }) => waitMs));
  return { deletions: [], creations, ...(Number.isFinite(afterMs) && { afterMs }) };
}
