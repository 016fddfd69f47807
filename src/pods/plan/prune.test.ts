import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import { type DeadLimits, prunePod } from "./prune.ts";

const app = { name: "app", image: "app:1" };
const of = pod("web").container("app").build();
const now = { wall: 100_000, mono: 0 };
const ended = (attempt: number, finishedAt: number): ObservedContainer =>
  seen(app, { id: `app-${attempt}`, attempt, state: "exited", finishedAt });
const running = seen(app, { id: "app-9", attempt: 9, state: "running" });
const past = [ended(3, 90_000), ended(2, 80_000), ended(1, 70_000)];

const cases: readonly {
  name: string;
  containers: readonly ObservedContainer[];
  limits: DeadLimits;
  want: readonly string[];
  afterMs?: number;
}[] = [
  {
    name: "one is kept beside the running one",
    containers: [running, ...past],
    limits: { perContainer: 1, minAgeMs: 0 },
    want: ["app-2", "app-1"],
  },
  {
    name: "two are kept",
    containers: [running, ...past],
    limits: { perContainer: 2, minAgeMs: 0 },
    want: ["app-1"],
  },
  {
    name: "a negative limit keeps all",
    containers: [running, ...past],
    limits: { perContainer: -1, minAgeMs: 0 },
    want: [],
  },
  {
    name: "none is kept beside the running one",
    containers: [running, ...past],
    limits: { perContainer: 0, minAgeMs: 0 },
    want: ["app-3", "app-2", "app-1"],
  },
  {
    name: "the newest is kept if it is a terminated one",
    containers: past,
    limits: { perContainer: 0, minAgeMs: 0 },
    want: ["app-2", "app-1"],
  },
  {
    name: "one that the node has no room for goes before its time, but never the newest",
    containers: past,
    limits: { perContainer: -1, minAgeMs: 0, isDiscarded: (id) => id !== "app-1" },
    want: ["app-2"],
  },
  {
    name: "young ones are kept until their minimum age",
    containers: [running, ...past],
    limits: { perContainer: 1, minAgeMs: 25_000 },
    want: ["app-1"],
    afterMs: 5000,
  },
];
for (const { name, containers, limits, want, afterMs } of cases) {
  test(name, () => {
    const pruning = prunePod(observed(of, [sandbox()], containers), limits, now);
    assert.deepEqual(
      pruning.containers.map(({ id }) => id),
      want,
    );
    assert.equal(pruning.afterMs, afterMs);
  });
}

test("an old sandbox is removed with the last container in it", () => {
  const old = sandbox({ id: "old", state: "notReady" });
  const young = { perContainer: 0, minAgeMs: 50_000 };
  const within = observed(of, [sandbox({ attempt: 1 }), old], [running, { ...ended(1, 70_000), sandboxId: "old" }]);
  assert.deepEqual(prunePod(within, young, now).sandboxIds, []);
  assert.deepEqual(prunePod(within, { ...young, minAgeMs: 0 }, now).sandboxIds, ["old"]);
});
