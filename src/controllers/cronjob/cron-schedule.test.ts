import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseSchedule } from "./cron-schedule.ts";
import { dueTime, untilNextMs } from "./due-time.ts";

const next = (schedule: string, after: string, timeZone = "UTC"): string | undefined => {
  const ms = parseSchedule(schedule, timeZone).next(Date.parse(after));
  return ms === undefined ? undefined : new Date(ms).toISOString().slice(0, 16);
};

const cases = [
  { schedule: "* * * * *", after: "2026-01-01T00:00:30Z", want: "2026-01-01T00:01" },
  { schedule: "*/15 * * * *", after: "2026-01-01T00:15:00Z", want: "2026-01-01T00:30" },
  { schedule: "5/20 * * * *", after: "2026-01-01T00:25:00Z", want: "2026-01-01T00:45" },
  { schedule: "0 9-17/4 * * MON-FRI", after: "2026-01-02T17:00:00Z", want: "2026-01-05T09:00" },
  { schedule: "30 4 1,15 * *", after: "2026-01-15T04:30:00Z", want: "2026-02-01T04:30" },
  { schedule: "0 0 31 * *", after: "2026-01-31T00:00:00Z", want: "2026-03-31T00:00" },
  { schedule: "0 0 29 feb ?", after: "2026-01-01T00:00:00Z", want: "2028-02-29T00:00" },
  // Both fields of days: one of them suffices.
  { schedule: "0 0 13 * FRI", after: "2026-01-01T00:00:00Z", want: "2026-01-02T00:00" },
  { schedule: "0 0 */2 * FRI", after: "2026-01-02T00:00:00Z", want: "2026-01-03T00:00" },
  { schedule: "0 0 31 2 *", after: "2026-01-01T00:00:00Z", want: undefined },
  { schedule: "@hourly", after: "2026-01-01T00:00:00Z", want: "2026-01-01T01:00" },
  { schedule: "@weekly", after: "2026-01-01T00:00:00Z", want: "2026-01-04T00:00" },
  { schedule: "@yearly", after: "2026-01-01T00:00:00Z", want: "2027-01-01T00:00" },
  { schedule: "@every 90m", after: "2026-01-01T00:10:00Z", want: "2026-01-01T01:40" },
  { schedule: "0 3 * * *", after: "2026-01-01T00:00:00Z", timeZone: "Europe/Berlin", want: "2026-01-01T02:00" },
  { schedule: "0 3 * * *", after: "2026-07-01T00:00:00Z", timeZone: "America/New_York", want: "2026-07-01T07:00" },
  { schedule: "15 6 * * *", after: "2026-01-01T00:00:00Z", timeZone: "Asia/Kolkata", want: "2026-01-01T00:45" },
  // The clocks go forward from 2 to 3 on 29 March: half past two comes the day after.
  { schedule: "30 2 * * *", after: "2026-03-28T12:00:00Z", timeZone: "Europe/Berlin", want: "2026-03-30T00:30" },
  // They go back from 3 to 2 on 25 October: half past two comes twice.
  { schedule: "30 2 * * *", after: "2026-10-25T00:30:00Z", timeZone: "Europe/Berlin", want: "2026-10-25T01:30" },
  // Midnight is skipped in this zone.
  { schedule: "0 0 * * *", after: "2026-09-05T12:00:00Z", timeZone: "America/Santiago", want: "2026-09-07T03:00" },
  { schedule: "15 1 * * SUN", after: "2026-09-06T03:30:00Z", timeZone: "America/Santiago", want: "2026-09-06T04:15" },
] as const;
for (const { schedule, after, want, ...more } of cases) {
  const zone = "timeZone" in more ? more.timeZone : "UTC";
  test(`${schedule} in ${zone} after ${after}`, () => assert.equal(next(schedule, after, zone), want));
}

for (const [schedule, message] of [
  ["* * * *", "expected exactly 5 fields, found 4: [* * * *]"],
  ["60 * * * *", "end of range (60) above maximum (59): 60"],
  ["* * 0 * *", "beginning of range (0) below minimum (1): 0"],
  ["5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"],
  ["*/0 * * * *", "step of range should be a positive number: */0"],
  ["x * * * *", "failed to parse int from x"],
  ["@often", "unrecognized descriptor: @often"],
  ["@every soon", /^failed to parse duration @every soon: /],
] as const) {
  test(`${schedule} is refused`, () => assert.throws(() => parseSchedule(schedule), { message }));
}

test("an unknown time zone is refused", () => {
  assert.throws(() => parseSchedule("* * * * *", "Mars/Olympus"), RangeError);
});

const at = (text: string): number => Date.parse(`2026-01-01T${text}Z`);
const cronJob = (last: string | undefined, deadline?: number) => ({
  metadata: { creationTimestamp: "2026-01-01T00:00:00Z" },
  spec: {
    schedule: "*/10 * * * *",
    jobTemplate: {},
    ...(deadline !== undefined && { startingDeadlineSeconds: deadline }),
  },
  ...(last && { status: { lastScheduleTime: `2026-01-01T${last}Z` } }),
});
const schedule = parseSchedule("*/10 * * * *", "UTC");
const dues = [
  { name: "nothing is due before the first time", last: undefined, now: "00:09:59", want: undefined },
  { name: "the first time is due", last: undefined, now: "00:10:00", want: "00:10:00" },
  { name: "what was handled is not due again", last: "00:10:00", now: "00:19:59", want: undefined },
  { name: "of several that were missed only the last is due", last: "00:10:00", now: "05:35:00", want: "05:30:00" },
] as const;
for (const { name, last, now, want } of dues) {
  test(name, () => {
    const { dueMs, hasManyMissed } = dueTime(cronJob(last), schedule, { nowMs: at(now), usesDeadline: true });
    assert.deepEqual([dueMs, hasManyMissed], [want && at(want), false]);
  });
}
for (const { text, now, want } of [
  { text: "0,1 * * * *", now: "2026-01-20T10:30:00Z", want: "2026-01-20T10:01:00Z" },
  { text: "0,5 9 * * *", now: "2026-01-20T08:00:00Z", want: "2026-01-19T09:05:00Z" },
  { text: "*/5 9 1 * *", now: "2026-04-30T00:00:00Z", want: "2026-04-01T09:55:00Z" },
  { text: "0,5 9 1 1 *", now: "2026-12-01T00:00:00Z", want: "2026-01-01T09:05:00Z" },
]) {
  test(`of ${text} only the last before ${now} is due, though a gap came after it`, () => {
    const uneven = parseSchedule(text, "UTC");
    assert.equal(
      dueTime(cronJob(undefined), uneven, { nowMs: Date.parse(now), usesDeadline: true }).dueMs,
      Date.parse(want),
    );
  });
}
/** Counts the calls of a schedule. */
function counted(text: string, timeZone: string) {
  const inner = parseSchedule(text, timeZone);
  const counter = { calls: 0 };
  const next = (afterMs: number): number | undefined => {
    counter.calls++;
    return inner.next(afterMs);
  };
  return { counter, schedule: { next, intervalMs: inner.intervalMs } };
}

for (const { text, last, now, want } of [
  { text: "* * * 1-6 *", last: "2020-06-30T23:58:00Z", now: "2026-07-10T00:00:00Z", want: "2026-06-30T23:59:00Z" },
  { text: "* * * 1-6 *", last: "2020-06-30T23:59:00Z", now: "2026-05-10T07:30:20Z", want: "2026-05-10T07:30:00Z" },
  { text: "* * * * *", last: "2020-01-01T00:00:00Z", now: "2026-07-10T00:00:59Z", want: "2026-07-10T00:00:00Z" },
  { text: "0,1 0 1 1 *", last: "2020-01-01T00:00:00Z", now: "2026-07-10T00:00:00Z", want: "2026-01-01T00:01:00Z" },
  { text: "@every 1s", last: "2020-01-01T00:00:00.5Z", now: "2026-07-10T00:00:00.7Z", want: "2026-07-10T00:00:00Z" },
]) {
  test(`the last time of ${text} before ${now} since ${last} is found with few calls`, () => {
    const { counter, schedule: long } = counted(text, "UTC");
    const missed = { ...cronJob(undefined), status: { lastScheduleTime: last } };
    const { dueMs } = dueTime(missed, long, { nowMs: Date.parse(now), usesDeadline: true });
    assert.equal(dueMs, Date.parse(want));
    assert.ok(counter.calls <= 60, String(counter.calls));
  });
}

const anyCronJob = fc.record({
  text: fc.constantFrom(
    ...["*/7 * * * *", "0,5 9 * * *", "30 2 * * *", "*/15 1-3 * * *", "0 0 * * *", "0 0 13 * FRI", "* 0 * * *"],
    ...["0 0,12 * 3,10 SUN", "7/13 */5 */3 * MON-FRI", "@hourly", "@weekly", "@every 90m", "@every 36h", "@every 61s"],
  ),
  timeZone: fc.constantFrom("UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "Asia/Beirut"),
  // Around changes of the clocks in these zones, and around none.
  around: fc.constantFrom(
    ...["2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2026-09-06T04:00:00Z", "2026-04-05T03:00:00Z"],
    ...["2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z", "2026-03-28T22:00:00Z", "2026-10-24T21:00:00Z"],
    "2026-06-15T12:00:00Z",
  ),
  laterMs: fc.integer({ min: -4 * 3_600_000, max: 30 * 3_600_000 }),
  sinceMs: fc.oneof(fc.integer({ min: 0, max: 4 * 3_600_000 }), fc.integer({ min: 0, max: 20 * 86_400_000 })),
});

test("the time that is due is the one that a walk through all times finds, also where the clocks change", () => {
  fc.assert(
    fc.property(anyCronJob, ({ text, timeZone, around, laterMs, sinceMs }) => {
      const any = parseSchedule(text, timeZone);
      const nowMs = Date.parse(around) + laterMs;
      const fromMs = nowMs - sinceMs;
      const metadata = { creationTimestamp: new Date(fromMs).toISOString() };
      let want: number | undefined;
      for (let ms = any.next(fromMs); ms !== undefined && ms <= nowMs; ms = any.next(ms)) want = ms;
      const { dueMs } = dueTime({ ...cronJob(undefined), metadata }, any, { nowMs, usesDeadline: true });
      assert.equal(dueMs, want);
    }),
    { numRuns: 300 },
  );
});

test("more than a hundred missed times are reported", () => {
  const nowMs = at("00:10:00") + 100 * 600_000;
  assert.equal(dueTime(cronJob(undefined), schedule, { nowMs, usesDeadline: true }).hasManyMissed, true);
});
test("a hundred missed times are not yet too many", () => {
  const nowMs = at("00:10:00") + 99 * 600_000;
  assert.equal(dueTime(cronJob(undefined), schedule, { nowMs, usesDeadline: true }).hasManyMissed, false);
});
test("what was handled is not due again, however long the deadline", () => {
  const { dueMs } = dueTime(cronJob("00:20:00", 3600), schedule, { nowMs: at("00:25:00"), usesDeadline: true });
  assert.equal(dueMs, undefined);
});
test("what is older than the deadline is not due", () => {
  const { dueMs } = dueTime(cronJob("00:10:00", 60), schedule, { nowMs: at("00:25:00"), usesDeadline: true });
  assert.equal(dueMs, undefined);
});
test("the next time is a little after the one on the clock", () => {
  assert.equal(untilNextMs(cronJob("00:10:00"), schedule, at("00:12:00")), 480_100);
});
