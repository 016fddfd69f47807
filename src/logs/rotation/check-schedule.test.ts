import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { CheckSchedule } from "./check-schedule.ts";

/** A schedule, and the names of the checks that ran, with the time. */
function setUp() {
  const clock = new FakeClock();
  const ran: string[] = [];
  const check = (name: string) => (): void => void ran.push(`${name}@${clock.now().mono}`);
  return { clock, ran, check, schedule: new CheckSchedule(clock) };
}

test("checks of many logs run when they are due, with one timer", async () => {
  const { clock, ran, check, schedule } = setUp();
  schedule.set(check("late"), 40);
  schedule.set(check("early"), 10);
  schedule.set(check("together"), 10.5);
  assert.equal(clock.waiting, 1);
  assert.deepEqual(ran, [], "never synchronously");
  await clock.advance(50);
  assert.deepEqual(ran, ["early@10", "together@10", "late@40"]);
  assert.equal(clock.waiting, 0);
});

test("a check that is set again runs once, at its new time", async () => {
  const { clock, ran, check, schedule } = setUp();
  const [later, sooner] = [check("later"), check("sooner")];
  schedule.set(later, 10);
  schedule.set(later, 30);
  schedule.set(sooner, 30);
  schedule.set(sooner, 10);
  await clock.advance(50);
  assert.deepEqual(ran, ["sooner@10", "later@30"]);
});

test("a check may set itself again, and cancel another that is due", async () => {
  const { clock, ran, check, schedule } = setUp();
  const cancelled = check("cancelled");
  let times = 0;
  const again = (): void => {
    ran.push(`again@${clock.now().mono}`);
    schedule.cancel(cancelled);
    if (++times < 3) schedule.set(again, 5);
  };
  schedule.set(again, 0);
  schedule.set(cancelled, 0);
  await clock.advance(50);
  assert.deepEqual(ran, ["again@0", "again@5", "again@10"]);
});

test("a check that throws does not end the checks of other logs", async () => {
  const { clock, ran, check, schedule } = setUp();
  schedule.set(() => {
    throw new Error("bad file descriptor");
  }, 10);
  schedule.set(check("other"), 20);
  await assert.rejects(clock.advance(15), /bad file descriptor/);
  await clock.advance(15);
  assert.deepEqual(ran, ["other@20"]);
});

test("without checks there is no timer", () => {
  const { clock, check, schedule } = setUp();
  const only = check("only");
  schedule.set(only, 10);
  schedule.cancel(only);
  assert.equal(clock.waiting, 0);
});
