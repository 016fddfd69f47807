import assert from "node:assert/strict";
import { test } from "node:test";
import { seen } from "../../../test/support/pods.ts";
import { type DeadContainersPod, planDeadContainers } from "./plan-dead-containers.ts";

const now = { wall: 100_000, mono: 0 };

/** A pod with instances of one container, newest first, by the second in which they were created. */
function pod(
  uid: string,
  seconds: readonly number[],
  more: { running?: boolean; done?: boolean } = {},
): DeadContainersPod {
  const dead = seconds.map((second) =>
    seen(
      { name: "app" },
      { id: `${uid}-${second}`, state: "exited", createdAt: second * 1000, finishedAt: second * 1000 },
    ),
  );
  const running = more.running === true ? [seen({ name: "app" }, { id: `${uid}-running`, createdAt: 99_000 })] : [];
  return { uid, containers: [...running, ...dead], isDispensable: more.done === true };
}

const cases: readonly {
  name: string;
  pods: readonly DeadContainersPod[];
  total: number;
  minAgeMs?: number;
  want: readonly string[];
}[] = [
  { name: "a negative limit keeps all", pods: [pod("a", [3, 2, 1], { running: true })], total: -1, want: [] },
  { name: "as many as the limit stay", pods: [pod("a", [2, 1], { running: true })], total: 2, want: [] },
  {
    name: "also if they are not in equal shares",
    pods: [pod("a", [3, 2, 1], { running: true }), pod("b", [10], { running: true })],
    total: 4,
    want: [],
  },
  {
    name: "a share may be more than one",
    pods: [pod("a", [50, 40, 30, 20, 10], { running: true }), pod("b", [3], { running: true })],
    total: 4,
    want: ["a-30", "a-20", "a-10"],
  },
  {
    name: "each container keeps its share",
    pods: [pod("a", [30, 20, 10], { running: true }), pod("b", [3], { running: true })],
    total: 2,
    want: ["a-20", "a-10"],
  },
  {
    name: "then the oldest of all go",
    pods: [pod("a", [30], { running: true }), pod("b", [20], { running: true }), pod("c", [10], { running: true })],
    total: 1,
    want: ["b-20", "c-10"],
  },
  {
    name: "the newest instance stays as long as the pod needs it",
    pods: [pod("a", [3, 2]), pod("b", [5])],
    total: 0,
    want: ["a-2"],
  },
  {
    name: "that of a pod that ended and whose status is kept elsewhere goes too",
    pods: [pod("a", [3, 2], { done: true }), pod("b", [5])],
    total: 0,
    want: ["a-2", "a-3"],
  },
  {
    name: "young ones stay",
    pods: [pod("a", [95, 60, 10], { running: true })],
    total: 0,
    minAgeMs: 30_000,
    want: ["a-10", "a-60"],
  },
];
for (const { name, pods, total, minAgeMs = 0, want } of cases) {
  test(name, () => {
    const chosen = planDeadContainers(pods, { total, minAgeMs }, now);
    assert.deepEqual([...chosen.values()].flatMap((ids) => [...ids]).sort(), [...want].sort());
  });
}
