import { ApiError, JOBS, PODS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Loop } from "../../lib/loop.ts";
import type { Job, JobStatus, Pod } from "../../model/generated/types.ts";
import { conditionOf, isConditionTrue } from "../conditions.ts";
import type { ControllerDeps } from "../controller.ts";
import type { RecordEvent } from "../event-sink.ts";
import type { Informer } from "../informers.ts";
import { partsOf } from "../object-index.ts";
import { claimObjects, wakeOwners } from "../owned-objects.ts";
import { PodControl } from "../pod-control.ts";
import { type Outcome, Reconciler } from "../reconciler.ts";
import { timeOf, timeText } from "../time-text.ts";
import {
  assessJob,
  deadlineMs,
  type FailureRecord,
  isSuspended,
  type JobAssessment,
  type JobFacts,
  type JobVerdict,
  nextRecord,
} from "./assess-job.ts";
import { indexedPrefix, jobTemplate, TRACKING_FINALIZER } from "./job-pods.ts";
import { JobTracking, jobCondition } from "./job-tracking.ts";
import { OrphanedJobPods } from "./orphaned-job-pods.ts";
import { planJob } from "./plan-job.ts";

const OWN_NAME = "kubernetes.io/job-controller";

/** Runs the pods of each Job until enough have succeeded, or too many failed. */
export function jobController(deps: ControllerDeps): Loop {
  const jobs = new Jobs(deps);
  return { name: "jobs", run: (signal) => jobs.run(signal) };
}

/** True for a job that has ended. */
export function isFinished({ status }: Job): boolean {
  return isConditionTrue(status?.conditions, "Complete") || isConditionTrue(status?.conditions, "Failed");
}

class Jobs {
  private readonly jobs: Informer<Job>;
  private readonly pods: Informer<Pod>;
  private readonly record: RecordEvent;
  private readonly podControl: PodControl;
  private readonly tracking: JobTracking;
  private readonly orphans: OrphanedJobPods;
  private readonly failures = new Map<string, FailureRecord>();
  private readonly reconciler: Reconciler;

  constructor(private readonly deps: ControllerDeps) {
    this.jobs = deps.informers.of(JOBS);
    this.pods = deps.informers.of(PODS);
    this.record = deps.events.recorder("job-controller");
    this.podControl = new PodControl(deps, this.record);
    this.tracking = new JobTracking(deps);
    this.orphans = new OrphanedJobPods(deps, this.tracking);
    this.reconciler = new Reconciler(deps, { name: "jobs", reconcile: (key, options) => this.sync(key, options) });
  }

  async run(signal: AbortSignal): Promise<void> {
    const wake = (key: string): void => this.reconciler.wake(key);
    const forget = ({ metadata }: Job): void => void this.failures.delete(metadata.uid ?? "");
    this.jobs.onChange(({ kind, object }) => kind === "deleted" && forget(object), { signal });
    const selectorOf = ({ spec }: Job) => spec.selector;
    wakeOwners({ objects: this.pods, owners: this.jobs, kind: JOBS.kind, selectorOf, wake }, { signal });
    await Promise.all([this.reconciler.run(signal), this.orphans.run(signal)]);
  }

  private async sync(key: string, options: Abortable): Promise<Outcome> {
    await Promise.all([this.jobs.synced(options), this.pods.synced(options)]);
    const { namespace, name } = partsOf(key);
    const job = this.jobs.get(namespace, name);
    if (job === undefined || (job.spec.managedBy ?? OWN_NAME) !== OWN_NAME) return undefined;
    if (isFinished(job)) return this.expire(job, options);
    const nowMs = this.deps.clock.now().wall;
    const now = timeText(nowMs);
    const started: Job =
      job.status?.startTime !== undefined || isSuspended(job)
        ? job
        : { ...job, status: { ...job.status, startTime: now } };
    const owner = { resource: JOBS, object: job };
    const claim = { api: this.deps.api, resource: PODS, informer: this.pods };
    // Without the finalizer, the end of an adopted pod would not be counted, and its work be done again.
    const finalizers = [TRACKING_FINALIZER];
    const pods = await claimObjects(claim, { owner, selector: job.spec.selector, finalizers }, options);
    // As it is now: pods that the end of the job deletes are no failures.
    const deleting = new Set(pods.filter((pod) => this.pods.isDeleting(pod)));
    const facts: JobFacts = { job: started, pods, isDeleting: (pod) => deleting.has(pod), nowMs };
    const assessment = assessJob(facts);
    return this.advance({ job, facts, assessment, now }, options);
  }

  private async advance(
    { job, facts, assessment, now }: { job: Job; facts: JobFacts; assessment: JobAssessment; now: string },
    options: Abortable,
  ): Promise<Outcome> {
    const uid = job.metadata.uid ?? "";
    const record = nextRecord(this.failures.get(uid), assessment.newSucceeded, assessment.newFailed);
    const acted = await this.act({ job, facts, assessment, record }, options);
    const { failure, afterMs, removed } = acted;
    const active = assessment.active.length + acted.created - removed.length;
    const verdict =
      failure === undefined ? (assessment.verdict ?? this.success(facts.job, assessment, active)) : undefined;
    const status = this.statusOf({ facts, verdict, now }, assessment, { active, removed });
    const terminating = assessment.terminating.length + removed.length;
    const tracking = { facts: { ...facts, job }, assessment, status: { ...status, terminating }, verdict, terminating };
    const remember = (): void => {
      if (record === undefined) this.failures.delete(uid);
      else this.failures.set(uid, record);
    };
    const updated = await this.tracking.track(tracking, remember, options);
    if (!isFinished(job) && isFinished(updated)) this.reportEnd(updated);
    if (failure !== undefined) throw failure;
    const waits = [afterMs, deadlineMs(facts)].filter((ms): ms is number => ms !== undefined && ms > 0);
    return waits.length === 0 ? undefined : { afterMs: Math.min(...waits) };
  }

  /** Creates and deletes pods. What went wrong is thrown after the status is written. */
  private async act(
    {
      job,
      facts,
      assessment,
      record,
    }: {
      job: Job;
      facts: JobFacts;
      assessment: JobAssessment;
      record: FailureRecord | undefined;
    },
    options: Abortable,
  ): Promise<{ created: number; removed: readonly Pod[]; afterMs?: number; failure?: ApiError }> {
    const owner = { resource: JOBS, object: job };
    const removed: Pod[] = [];
    if (job.metadata.deletionTimestamp !== undefined) return { created: 0, removed };
    const isEnding = assessment.verdict !== undefined;
    const plan = isEnding
      ? { deletions: assessment.active, creations: [] }
      : planJob({ job: facts.job, assessment, record, nowMs: facts.nowMs });
    let created = 0;
    const afterMs = "afterMs" in plan ? plan.afterMs : undefined;
    const outcome = { ...(afterMs !== undefined && { afterMs }) };
    try {
      for (const pod of plan.deletions) {
        // Pods that are deleted because there are too many are no failures.
        if (!isEnding) await this.tracking.release(pod, options);
        await this.podControl.delete(owner, pod, options);
        removed.push(pod);
      }
      const podOf = (at: number) => {
        const index = plan.creations[at];
        const replaced = index === undefined ? undefined : assessment.delayed.get(index);
        const template = jobTemplate(job, index, replaced);
        return { template, ...(index !== undefined && { generateName: indexedPrefix(job, index) }) };
      };
      created = await this.podControl.createMany(owner, { count: plan.creations.length, podOf }, options);
      return { created, removed, ...outcome };
    } catch (failure) {
      if (failure instanceof ApiError) return { created, removed, ...outcome, failure };
      throw failure;
    }
  }

  private success({ spec }: Job, { succeeded }: JobAssessment, active: number): JobVerdict | undefined {
    const isReached = spec.completions === undefined ? succeeded > 0 : succeeded >= spec.completions;
    if (!isReached || active > 0) return undefined;
    const message = "Reached expected number of succeeded pods";
    return { type: "SuccessCriteriaMet", reason: "CompletionsReached", message };
  }

  private statusOf(
    { facts, verdict, now }: { facts: JobFacts; verdict: JobVerdict | undefined; now: string },
    { ready, active: known }: JobAssessment,
    { active, removed }: { active: number; removed: readonly Pod[] },
  ): JobStatus {
    const { job } = facts;
    const gone = known.filter((pod) => removed.includes(pod) && isConditionTrue(pod.status?.conditions, "Ready"));
    const status: JobStatus = { ...job.status, active, ready: ready - gone.length };
    if (verdict !== undefined || job.metadata.deletionTimestamp !== undefined) return status;
    return this.withSuspension(job, status, now);
  }

  private withSuspension(job: Job, status: JobStatus, now: string): JobStatus {
    const { conditions = [] } = status;
    const known = conditionOf(conditions, "Suspended");
    if (isSuspended(job) === (known?.status === "True")) return status;
    const others = conditions.filter((one) => one !== known);
    const { startTime: _start, ...rest } = status;
    if (isSuspended(job)) {
      const words = { type: "Suspended", reason: "JobSuspended", message: "Job suspended" };
      this.event(job, { type: "Normal", reason: "Suspended", message: "Job suspended" });
      return { ...rest, conditions: [...others, jobCondition(words, now)] };
    }
    this.event(job, { type: "Normal", reason: "Resumed", message: "Job resumed" });
    const words = { type: "Suspended", reason: "JobResumed", message: "Job resumed" };
    return { ...rest, startTime: now, conditions: [...others, { ...jobCondition(words, now), status: "False" }] };
  }

  private reportEnd(job: Job): void {
    const failed = conditionOf(job.status?.conditions, "Failed");
    if (failed !== undefined) {
      this.event(job, { type: "Warning", reason: failed.reason ?? "Failed", message: failed.message ?? "" });
      return;
    }
    if (job.spec.completions !== undefined && (job.status?.succeeded ?? 0) > job.spec.completions) {
      const message = "Too many succeeded pods running after completion count reached";
      this.event(job, { type: "Warning", reason: "TooManySucceededPods", message });
    }
    this.event(job, { type: "Normal", reason: "Completed", message: "Job completed" });
  }

  private event(job: Job, event: { type: "Normal" | "Warning"; reason: string; message: string }): void {
    this.record({ ...event, resource: JOBS, object: job });
  }

  /** Deletes a job some time after its end, if it asks for that. */
  private async expire(job: Job, options: Abortable): Promise<Outcome> {
    const { metadata, spec, status } = job;
    this.failures.delete(metadata.uid ?? "");
    if (spec.ttlSecondsAfterFinished === undefined || metadata.deletionTimestamp !== undefined) return undefined;
    const ends = (status?.conditions ?? []).filter(({ type }) => type === "Complete" || type === "Failed");
    const endedAt = timeOf(ends[0]?.lastTransitionTime) ?? 0;
    const leftMs = endedAt + spec.ttlSecondsAfterFinished * 1000 - this.deps.clock.now().wall;
    if (leftMs > 0) return { afterMs: leftMs };
    const { namespace = "", name = "", uid = "" } = metadata;
    try {
      await this.deps.api.delete(JOBS, { namespace, name, uid, propagation: "Foreground" }, options);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
    }
    return undefined;
  }
}
