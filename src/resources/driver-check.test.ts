import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { type CgroupDriver, checkDriver } from "./index.ts";

/** Answers of the runtime in their order, an error while it does not answer. */
function check(...answers: (CgroupDriver | undefined | Error)[]) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const cgroupDriver = async (): Promise<CgroupDriver | undefined> => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const running = checkDriver({ clock, runtime: { cgroupDriver } }, "cgroupfs").run(stop.signal);
  return { clock, stop, running, answers };
}
const late = new Error("not yet");

test("an agent that assumed another cgroup driver than the runtime has ends once that answers", async () => {
  const { clock, running } = check(late, late, "systemd");
  const ended = assert.rejects(running, /uses cgroup driver systemd, and the agent assumed cgroupfs/);
  await clock.advance(4000);
  await ended;
});

test("the same driver, or a runtime that does not tell, is the end of the check and not of the agent", async () => {
  for (const answer of ["cgroupfs", undefined] as const) {
    const { clock, stop, running, answers } = check(late, answer, "systemd");
    await clock.advance(60_000);
    assert.deepEqual(answers, ["systemd"], "it is not asked again");
    stop.abort();
    await running;
  }
});

test("a runtime that does not answer is asked every two seconds, and not after the agent has stopped", async () => {
  const { clock, stop, running, answers } = check(...Array.from({ length: 10 }, () => late));
  await clock.advance(5000);
  assert.equal(answers.length, 7);
  stop.abort(new Error("stopped"));
  const ended = assert.rejects(running, /stopped/);
  await clock.advance(5000);
  await ended;
  assert.equal(answers.length, 7);
});

test("the check goes on as long as the agent, so that its end is no failure", async () => {
  const { clock, stop, running } = check("cgroupfs");
  let isOver = false;
  void running.then(() => {
    isOver = true;
  });
  await clock.advance(60_000);
  assert.equal(isOver, false);
  stop.abort();
  await running;
});
