import assert from "node:assert/strict";
import { test } from "node:test";
import { fromContainerStatus } from "./from-wire.ts";
import { ContainerStatus as WireStatus } from "./generated/cri.ts";
import { TaskStates } from "./task-states.ts";

const status = (state: 0 | 1 | 2) => fromContainerStatus(WireStatus.fromPartial({ id: "a", state, exitCode: 0 }));

const cases = [
  { name: "a failure is an Error", code: 3, oom: false, want: "Error" },
  { name: "success is Completed", code: 0, oom: false, want: "Completed" },
  { name: "a kill for memory is OOMKilled", code: 137, oom: true, want: "OOMKilled" },
];
for (const { name, code, oom, want } of cases) {
  test(`${name} before CRI knows`, () => {
    const tasks = new TaskStates();
    if (oom) tasks.killedForMemory("a");
    tasks.exited("a", { exitCode: code, at: 99 });
    const { state, exitCode, reason, finishedAt } = tasks.status(status(1));
    assert.deepEqual([state, exitCode, reason, finishedAt], ["exited", code, want, 99]);
  });
}

test("a kill for memory that CRI knows of before the end is one", () => {
  const tasks = new TaskStates();
  tasks.exited("a", { exitCode: 137, at: 99 });
  assert.equal(tasks.status({ ...status(1), reason: "OOMKilled" }).reason, "OOMKilled");
});

test("what CRI knows itself is left as it is", () => {
  const tasks = new TaskStates();
  tasks.exited("a", { exitCode: 3, at: 99 });
  for (const known of [status(0), status(2)]) assert.equal(tasks.status(known), known);
});

test("an exit is news once, and again after it was settled", () => {
  const tasks = new TaskStates();
  assert.equal(tasks.exited("a", { exitCode: 0, at: 1 }), true);
  assert.equal(tasks.exited("a", { exitCode: 0, at: 1 }), false);
  tasks.settled("a");
  assert.equal(tasks.status(status(1)).state, "running");
  assert.equal(tasks.exited("a", { exitCode: 0, at: 1 }), true);
});

test("memory is bounded", () => {
  const tasks = new TaskStates();
  for (let n = 0; n < 10_000; n++) tasks.exited(`${n}`, { exitCode: 0, at: n });
  assert.equal(tasks.status({ ...status(1), id: "0" }).state, "running", "the oldest is dropped");
  assert.equal(tasks.status({ ...status(1), id: "9999" }).state, "exited");
});

test("an exit that CRI does not know yet is provisional, one that it knows is not", () => {
  const tasks = new TaskStates();
  tasks.exited("a", { exitCode: 3, at: 99 });
  assert.equal(tasks.status(status(1)).isProvisional, true);
  assert.equal(tasks.status(status(2)).isProvisional, undefined);
});

test("a kill for memory that is reported after the exit corrects its reason", () => {
  const tasks = new TaskStates();
  tasks.exited("a", { exitCode: 137, at: 99 });
  tasks.settled("a");
  tasks.killedForMemory("a");
  assert.equal(tasks.status({ ...status(2), exitCode: 137, reason: "Error" }).reason, "OOMKilled");
  tasks.removed("a");
  assert.equal(tasks.status({ ...status(2), exitCode: 137, reason: "Error" }).reason, "Error");
});

test("a start is under way until it is answered, well or not", async () => {
  const tasks = new TaskStates();
  assert.equal(tasks.startOf("a"), undefined);
  let answer: (error?: Error) => void = () => undefined;
  const call = new Promise<void>((resolve, reject) => {
    answer = (error) => (error === undefined ? resolve() : reject(error));
  });
  const followed = tasks.followStart("a", call);
  const waiting = tasks.startOf("a");
  assert.ok(waiting !== undefined);
  answer(new Error("no"));
  await assert.rejects(followed, /no/);
  await waiting;
  assert.equal(tasks.startOf("a"), undefined);
});
