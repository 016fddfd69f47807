import assert from "node:assert/strict";
import { test } from "node:test";
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
