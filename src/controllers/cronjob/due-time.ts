import type { CronJob } from "../../model/generated/types.ts";
import { timeOf } from "../time-text.ts";
import type { Schedule } from "./cron-schedule.ts";

/** A time that a job is due at, and whether suspiciously many before it were missed. */
export interface DueTime {
  readonly dueMs: number | undefined;
  readonly hasManyMissed: boolean;
  /** Where the next time is to be looked for from. */
  readonly fromMs: number;
}

const MANY = 100;
/** A little later than the time itself, so that it is over by then. */
const DELTA_MS = 100;

/** The last time up to now that was not handled yet. With a deadline, only as far back as that goes. Pure. */
export function dueTime(
  { metadata, spec, status }: CronJob,
  schedule: Schedule,
  { nowMs, usesDeadline }: { readonly nowMs: number; readonly usesDeadline: boolean },
): DueTime {
  const known = timeOf(status?.lastScheduleTime) ?? timeOf(metadata.creationTimestamp) ?? nowMs;
  const { startingDeadlineSeconds } = spec;
  const limit = usesDeadline && startingDeadlineSeconds !== undefined ? nowMs - startingDeadlineSeconds * 1000 : known;
  const fromMs = Math.max(known, limit);
  const first = schedule.next(fromMs);
  const second = first === undefined ? undefined : schedule.next(first);
  if (first === undefined || nowMs < first) return { dueMs: undefined, hasManyMissed: false, fromMs };
  if (second === undefined || nowMs < second) return { dueMs: first, hasManyMissed: false, fromMs };
  const interval = second - first;
  const missed = Math.floor((nowMs - first) / interval) + 1;
  return { dueMs: lastUntil(schedule, { first, second, nowMs }), hasManyMissed: missed > MANY, fromMs };
}

/** The last time up to now, of which `first` and `second` are not later. */
function lastUntil(
  schedule: Schedule,
  { first, second, nowMs }: { readonly first: number; readonly second: number; readonly nowMs: number },
): number {
  const interval = second - first;
  const steps = Math.floor((nowMs - first) / interval) - 1;
  // Near the end at once: there may be thousands in between. Where times are not even, as in "0,5 9 * * *", that may be
  // in a gap: further back by ever more, or each time before the gap would be taken for the last one, and start a job.
  for (let back = 0; back < steps; back = back * 2 + 1) {
    let next = schedule.next(first + (steps - back) * interval);
    let due: number | undefined;
    while (next !== undefined && next <= nowMs) {
      due = next;
      next = schedule.next(next);
    }
    if (due !== undefined) return due;
  }
  let due = second;
  for (let next = schedule.next(second); next !== undefined && next <= nowMs; next = schedule.next(next)) due = next;
  return due;
}

/** How long until the next time, in milliseconds. Pure. */
export function untilNextMs(cronJob: CronJob, schedule: Schedule, nowMs: number): number | undefined {
  const { dueMs, fromMs } = dueTime(cronJob, schedule, { nowMs, usesDeadline: false });
  const next = schedule.next(dueMs ?? fromMs);
  return next === undefined ? undefined : Math.max(0, next + DELTA_MS - nowMs);
}
