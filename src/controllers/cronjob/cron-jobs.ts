import { isDeepStrictEqual } from "node:util";
import { ApiError, apiVersionOf, CRON_JOBS, JOBS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Loop } from "../../lib/loop.ts";
import type { CronJob, CronJobStatus, Job, ObjectReference } from "../../model/generated/types.ts";
import { isConditionTrue } from "../conditions.ts";
import type { ControllerDeps } from "../controller.ts";
import type { RecordEvent } from "../event-sink.ts";
import type { Informer } from "../informers.ts";
import { controllerOf, partsOf } from "../object-index.ts";
import { controllerReference, managedBy, wakeOwners } from "../owned-objects.ts";
import { isNamespaceTerminating } from "../pod-control.ts";
import { type Outcome, Reconciler } from "../reconciler.ts";
import { timeOf, timeText } from "../time-text.ts";
import { parseSchedule, type Schedule } from "./cron-schedule.ts";
import { dueTime, untilNextMs } from "./due-time.ts";
import { ZonedTime } from "./zoned-time.ts";

const SCHEDULED_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/** Creates a Job whenever the schedule of a CronJob says so. */
export function cronJobController(deps: ControllerDeps): Loop {
  const jobs = new CronJobs(deps);
  return { name: "cron jobs", run: (signal) => jobs.run(signal) };
}

class CronJobs {
  private readonly cronJobs: Informer<CronJob>;
  private readonly jobs: Informer<Job>;
  private readonly record: RecordEvent;
  private readonly reconciler: Reconciler;

  constructor(private readonly deps: ControllerDeps) {
    this.cronJobs = deps.informers.of(CRON_JOBS);
    this.jobs = deps.informers.of(JOBS);
    this.record = deps.events.recorder("cronjob-controller");
    this.reconciler = new Reconciler(deps, {
      name: "cron jobs",
      reconcile: (key, options) => this.sync(key, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const wake = (key: string): void => this.reconciler.wake(key);
    const selectorOf = (): undefined => undefined;
    wakeOwners({ objects: this.jobs, owners: this.cronJobs, kind: CRON_JOBS.kind, selectorOf, wake }, { signal });
    await this.reconciler.run(signal);
  }

  private async sync(key: string, options: Abortable): Promise<Outcome> {
    await Promise.all([this.cronJobs.synced(options), this.jobs.synced(options)]);
    const { namespace, name } = partsOf(key);
    const stored = this.cronJobs.get(namespace, name);
    if (stored === undefined) return undefined;
    const jobs = managedBy(this.jobs, stored);
    const draft = { cronJob: { ...stored, status: await this.observe(stored, jobs, options) } };
    let outcome: Outcome;
    try {
      outcome = await this.start(draft, options);
      await this.forget(draft, jobs, options);
    } finally {
      await this.write(stored, draft.cronJob.status, options);
    }
    return outcome;
  }

  /** The status by what became of the jobs. */
  private async observe(cronJob: CronJob, jobs: readonly Job[], options: Abortable): Promise<CronJobStatus> {
    let { active = [], lastSuccessfulTime } = cronJob.status ?? {};
    for (const job of jobs) {
      const isKnown = active.some(({ uid }) => uid === job.metadata.uid);
      if (!isFinished(job)) {
        if (isKnown || this.jobs.isDeleting(job)) continue;
        const message = `Saw a job that the controller did not create or forgot: ${job.metadata.name}`;
        this.event(cronJob, { type: "Warning", reason: "UnexpectedJob", message });
        continue;
      }
      if (isKnown) {
        active = active.filter(({ uid }) => uid !== job.metadata.uid);
        const condition = isComplete(job) ? "Complete" : "Failed";
        const message = `Saw completed job: ${job.metadata.name}, condition: ${condition}`;
        this.event(cronJob, { type: "Normal", reason: "SawCompletedJob", message });
      }
      const completed = isComplete(job) ? job.status?.completionTime : undefined;
      if ((timeOf(completed) ?? 0) > (timeOf(lastSuccessfulTime) ?? 0) && completed) lastSuccessfulTime = completed;
    }
    for (const reference of active) {
      if (jobs.some(({ metadata }) => metadata.uid === reference.uid) || !(await this.isGone(reference, options)))
        continue;
      active = active.filter(({ uid }) => uid !== reference.uid);
      const message = `Active job went missing: ${reference.name}`;
      this.event(cronJob, { type: "Normal", reason: "MissingJob", message });
    }
    const { active: _active, ...rest } = cronJob.status ?? {};
    return { ...rest, ...(active.length > 0 && { active }), ...(lastSuccessfulTime && { lastSuccessfulTime }) };
  }

  private async isGone({ namespace = "", name = "" }: ObjectReference, options: Abortable): Promise<boolean> {
    try {
      await this.deps.api.get(JOBS, { namespace, name }, options);
      return false;
    } catch (error) {
      if (error instanceof ApiError && error.code === "NotFound") return true;
      throw error;
    }
  }

  /** Creates the job that is due, if there is one and the policy lets it. */
  private async start(draft: { cronJob: CronJob }, options: Abortable): Promise<Outcome> {
    const { cronJob } = draft;
    const { metadata, spec } = cronJob;
    if (metadata.deletionTimestamp !== undefined || spec.suspend === true) return undefined;
    const schedule = this.scheduleOf(cronJob);
    if (schedule === undefined) return undefined;
    const nowMs = this.deps.clock.now().wall;
    const later = (): Outcome => {
      const afterMs = untilNextMs(draft.cronJob, schedule, nowMs);
      return afterMs === undefined ? undefined : { afterMs };
    };
    const { dueMs, hasManyMissed } = dueTime(cronJob, schedule, { nowMs, usesDeadline: true });
    if (dueMs === undefined) return later();
    if (hasManyMissed) {
      const message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
      this.event(cronJob, { type: "Warning", reason: "TooManyMissedTimes", message });
    }
    const name = `${metadata.name}-${Math.floor(dueMs / 60_000)}`;
    const active = cronJob.status?.active ?? [];
    const isDone = timeOf(cronJob.status?.lastScheduleTime) === dueMs || active.some((one) => one.name === name);
    if (isDone) return later();
    if (spec.concurrencyPolicy === "Forbid" && active.length > 0) {
      const message = "Not starting job because prior execution is running and concurrency policy is Forbid";
      this.event(cronJob, { type: "Normal", reason: "JobAlreadyActive", message });
      return later();
    }
    if (spec.concurrencyPolicy === "Replace") for (const one of active) await this.replace(draft, one, options);
    const created = await this.create(draft.cronJob, { name, dueMs }, options);
    if (created === undefined) return later();
    const { status } = draft.cronJob;
    const next = { ...status, active: [...(status?.active ?? []), created], lastScheduleTime: timeText(dueMs) };
    draft.cronJob = { ...draft.cronJob, status: next };
    return later();
  }

  private scheduleOf(cronJob: CronJob): Schedule | undefined {
    const { schedule, timeZone } = cronJob.spec;
    try {
      return parseSchedule(schedule, timeZone);
    } catch (error) {
      const isZone = error instanceof RangeError;
      const message = isZone
        ? `invalid timeZone: ${JSON.stringify(timeZone)}: ${error.message}`
        : `unparseable schedule: ${JSON.stringify(schedule)} : ${messageOf(error)}`;
      this.event(cronJob, { type: "Warning", reason: isZone ? "UnknownTimeZone" : "UnparseableSchedule", message });
      return undefined;
    }
  }

  private async create(
    cronJob: CronJob,
    { name, dueMs }: { readonly name: string; readonly dueMs: number },
    options: Abortable,
  ): Promise<ObjectReference | undefined> {
    const { namespace = "", uid } = cronJob.metadata;
    const object = jobOf(cronJob, { name, dueMs });
    try {
      const job = await this.deps.api.create(JOBS, { namespace, object }, options);
      this.jobs.wrote(job);
      this.event(cronJob, { type: "Normal", reason: "SuccessfulCreate", message: `Created job ${name}` });
      return referenceTo(job);
    } catch (error) {
      if (!(error instanceof ApiError) || isNamespaceTerminating(error)) throw error;
      if (error.code !== "AlreadyExists") {
        const message = `Error creating job: ${error.message}`;
        this.event(cronJob, { type: "Warning", reason: "FailedCreate", message });
        throw error;
      }
      const found = await this.deps.api.get(JOBS, { namespace, name }, options);
      return controllerOf(found)?.uid === uid ? referenceTo(found) : undefined;
    }
  }

  private async replace(
    draft: { cronJob: CronJob },
    { name = "" }: ObjectReference,
    options: Abortable,
  ): Promise<void> {
    const { namespace = "" } = draft.cronJob.metadata;
    const job = await this.deps.api.get(JOBS, { namespace, name }, options);
    await this.delete(draft, job, options);
  }

  /** Deletes jobs that have ended beyond the limits of the history, the oldest first. */
  private async forget(draft: { cronJob: CronJob }, jobs: readonly Job[], options: Abortable): Promise<void> {
    const { successfulJobsHistoryLimit, failedJobsHistoryLimit } = draft.cronJob.spec;
    const ended = jobs.filter((job) => isFinished(job) && !this.jobs.isDeleting(job));
    const groups = [
      { limit: successfulJobsHistoryLimit, found: ended.filter(isComplete) },
      { limit: failedJobsHistoryLimit, found: ended.filter((job) => !isComplete(job)) },
    ];
    for (const { limit, found } of groups) {
      if (limit === undefined) continue;
      const oldestFirst = [...found].sort(byStart);
      for (const job of oldestFirst.slice(0, Math.max(0, found.length - limit))) await this.delete(draft, job, options);
    }
  }

  private async delete(draft: { cronJob: CronJob }, job: Job, options: Abortable): Promise<void> {
    const { namespace = "", name = "", uid = "" } = job.metadata;
    try {
      await this.deps.api.delete(JOBS, { namespace, name, uid, propagation: "Background" }, options);
      this.jobs.deleted(job);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code !== "NotFound") {
        const message = `Deleted job: ${error.message}`;
        this.event(draft.cronJob, { type: "Warning", reason: "FailedDelete", message });
        throw error;
      }
    }
    this.event(draft.cronJob, { type: "Normal", reason: "SuccessfulDelete", message: `Deleted job ${name}` });
    const { active = [], ...rest } = draft.cronJob.status ?? {};
    const left = active.filter((one) => one.uid !== uid);
    draft.cronJob = { ...draft.cronJob, status: { ...rest, ...(left.length > 0 && { active: left }) } };
  }

  private async write(stored: CronJob, status: CronJobStatus | undefined, options: Abortable): Promise<void> {
    if (isDeepStrictEqual({ ...stored.status }, { ...status })) return;
    const { namespace = "", name = "" } = stored.metadata;
    const object = { ...stored, ...(status && { status }) };
    const change = { namespace, name, subresource: "status", object } as const;
    this.cronJobs.wrote(await this.deps.api.update(CRON_JOBS, change, options));
  }

  private event(cronJob: CronJob, event: { type: "Normal" | "Warning"; reason: string; message: string }): void {
    this.record({ ...event, resource: CRON_JOBS, object: cronJob });
  }
}

function isComplete({ status }: Job): boolean {
  return isConditionTrue(status?.conditions, "Complete");
}

function isFinished(job: Job): boolean {
  return isComplete(job) || isConditionTrue(job.status?.conditions, "Failed");
}

function byStart(a: Job, b: Job): number {
  const [startA, startB] = [a.status?.startTime ?? "~", b.status?.startTime ?? "~"];
  const order = startA < startB ? -1 : startA > startB ? 1 : 0;
  return order || ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1);
}

function referenceTo({ metadata }: Job): ObjectReference {
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = metadata;
  return { apiVersion: apiVersionOf(JOBS), kind: JOBS.kind, namespace, name, uid, resourceVersion };
}

/** The job of a time. Pure. */
function jobOf(cronJob: CronJob, { name, dueMs }: { readonly name: string; readonly dueMs: number }): Job {
  const { metadata = {}, spec } = cronJob.spec.jobTemplate;
  const { labels, annotations } = metadata;
  return {
    metadata: {
      name,
      ...(labels && { labels }),
      annotations: { ...annotations, [SCHEDULED_ANNOTATION]: zonedText(dueMs, cronJob.spec.timeZone ?? "UTC") },
      ownerReferences: [controllerReference({ resource: CRON_JOBS, object: cronJob })],
    },
    spec: spec ?? { template: {} },
  };
}

/** A moment as RFC 3339 with the offset of a time zone. */
function zonedText(ms: number, timeZone: string): string {
  const minutes = new ZonedTime(timeZone).offsetMinutes(ms);
  if (minutes === 0) return timeText(ms);
  const two = (value: number): string => String(value).padStart(2, "0");
  const size = Math.abs(minutes);
  const offset = `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
  return `${timeText(ms + minutes * 60_000).slice(0, 19)}${offset}`;
}
