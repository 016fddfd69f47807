import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { Acting, WantedNow } from "../plan/interrupt.ts";
import { RunningAction } from "./running-action.ts";

const before = pod().container("app").build();
const start: Acting = {
  pod: before,
  action: { do: "startContainer", start: { name: "app", kind: "regular", attempt: 0 } },
};
const never = new AbortController().signal;

describe("a running action", () => {
  test("does not begin if the pod was stopped since it was planned", () => {
    const running = new RunningAction((): WantedNow => ({ pod: before, stop: { graceSeconds: 30 } }));
    const interrupt = running.open(never);
    assert.throws(() => running.begin(start), /superseded/);
    assert.equal(interrupt.aborted, true);
  });

  test("is aborted by a stop that arrives while it runs", () => {
    let wanted: WantedNow = { pod: before, stop: undefined };
    const running = new RunningAction(() => wanted);
    const interrupt = running.open(never);
    running.begin(start);
    running.check();
    assert.equal(interrupt.aborted, false);
    wanted = { pod: before, stop: { graceSeconds: 30 } };
    running.check();
    assert.equal(interrupt.aborted, true);
  });

  test("that has ended is not aborted", () => {
    const running = new RunningAction((): WantedNow => ({ pod: before, stop: { graceSeconds: 30 } }));
    const interrupt = running.open(never);
    running.close();
    running.check();
    assert.equal(interrupt.aborted, false);
  });
});
