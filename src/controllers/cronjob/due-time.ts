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
const MINUTE_MS = 60_000;
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

/**
 * Returns the last time up to now, of which `first` and `second` are not later. Searches backwards from now: thousands of
 * times may lie in between, and the gaps between them say nothing about the others, as in "0,5 9 * * *".
 */
function lastUntil(
  schedule: Schedule,
  { first, second, nowMs }: { readonly first: number; readonly second: number; readonly nowMs: number },
): number {
  const { intervalMs } = schedule;
  if (intervalMs !== undefined) return first + Math.floor((nowMs - first) / intervalMs) * intervalMs;
  // The last time is `due`, or one after it up to `end`, in whole minutes: after `end` there is none up to now.
  let due = second;
  let end = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS;
  const search = (fromMs: number): boolean => {
    const next = schedule.next(fromMs);
    const isDue = next !== undefined && next <= nowMs;
    if (isDue) due = next;
    else end = fromMs;
    return isDue;
  };
  // With even gaps the first step finds it. Twice as far back each time: at most 60 calls for years of minutes.
  for (let back = second - first; end - back > due; back *= 2) if (search(end - back)) break;
  while (search(due)) if (end - due > MINUTE_MS) search(due + Math.ceil((end - due) / 2 / MINUTE_MS) * MINUTE_MS);
  return due;
}

/** How long until the next time, in milliseconds. Pure. */
export function untilNextMs(cronJob: CronJob, schedule: Schedule, nowMs: number): number | undefined {
  const { dueMs, fromMs } = dueTime(cronJob, schedule, { nowMs, usesDeadline: false });
  const next = schedule.next(dueMs ?? fromMs);
  return next === undefined ? undefined : Math.max(0, next + DELTA_MS - nowMs);
}
