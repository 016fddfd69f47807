import assert from "node:assert/strict";
import { test } from "node:test";
import { fromContainerStatus } from "./from-wire.ts";
import { ContainerStatus as WireStatus } from "./generated/cri.ts";
import { KnownExits } from "./known-exits.ts";

const status = (state: 0 | 1 | 2) => fromContainerStatus(WireStatus.fromPartial({ id: "a", state, exitCode: 0 }));

const cases = [
  { name: "a failure is an Error", code: 3, oom: false, want: "Error" },
  { name: "success is Completed", code: 0, oom: false, want: "Completed" },
  { name: "a kill for memory is OOMKilled", code: 137, oom: true, want: "OOMKilled" },
];
for (const { name, code, oom, want } of cases) {
  test(`${name} before CRI knows`, () => {
    const exits = new KnownExits();
    if (oom) exits.addOutOfMemory("a");
    exits.add("a", { exitCode: code, at: 99 });
    const { state, exitCode, reason, finishedAt } = exits.status(status(1));
    assert.deepEqual([state, exitCode, reason, finishedAt], ["exited", code, want, 99]);
  });
}

test("a kill for memory that CRI knows of before the end is one", () => {
  const exits = new KnownExits();
  exits.add("a", { exitCode: 137, at: 99 });
  assert.equal(exits.status({ ...status(1), reason: "OOMKilled" }).reason, "OOMKilled");
});

test("what CRI knows itself is left as it is", () => {
  const exits = new KnownExits();
  exits.add("a", { exitCode: 3, at: 99 });
  for (const known of [status(0), status(2)]) assert.equal(exits.status(known), known);
});

test("an exit is news once, and again after it was forgotten", () => {
  const exits = new KnownExits();
  assert.equal(exits.add("a", { exitCode: 0, at: 1 }), true);
  assert.equal(exits.add("a", { exitCode: 0, at: 1 }), false);
  exits.forget("a");
  assert.equal(exits.status(status(1)).state, "running");
  assert.equal(exits.add("a", { exitCode: 0, at: 1 }), true);
});

test("memory is bounded", () => {
  const exits = new KnownExits();
  for (let n = 0; n < 10_000; n++) exits.add(`${n}`, { exitCode: 0, at: n });
  assert.equal(exits.status({ ...status(1), id: "0" }).state, "running", "the oldest is forgotten");
  assert.equal(exits.status({ ...status(1), id: "9999" }).state, "exited");
});
