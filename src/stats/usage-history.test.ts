import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeUsageLine } from "../model/node-usage.ts";
import type { PodSample } from "./samples.ts";
import { UsageHistory } from "./usage-history.ts";

const none = { rxBytes: 0, txBytes: 0 };
const line = (at: number): NodeUsageLine => {
  return { at, workingSetBytes: at, network: none, swap: { totalBytes: 0, freeBytes: 0 } };
};

function pod(uid: string, wall: number, containers: Readonly<Record<string, number>>): PodSample {
  const usage = (nanoCores: number) => {
    const memory = { usage: 0, workingSet: nanoCores * 2, rss: 0, pageFaults: 0, majorPageFaults: 0, swap: 0 };
    return { at: { wall, mono: 0 }, nanoCores, memory };
  };
  const found = Object.entries(containers).map(([name, cores]) => {
    return { id: name, name, cgroup: "", image: "", startedAt: 0, usage: usage(cores) };
  });
  const sum = Object.values(containers).reduce((all, one) => all + one, 0);
  return { uid, name: uid, namespace: "d", startedAt: 0, usage: usage(sum), containers: found };
}

test("samples count ten seconds apart, and the oldest go", () => {
  const history = new UsageHistory();
  let made = 0;
  for (let second = 0; second < 1000; second += 2) {
    history.add(second * 1000, () => line(++made), [pod("u", second, { main: second })]);
  }
  const { node, pods } = history.report();
  assert.equal(made, 100, "what is not kept is not made");
  assert.deepEqual([node.length, node[0]?.at, node.at(-1)?.at], [60, 41, 100]);
  assert.deepEqual([pods["u"]?.length, pods["u"]?.at(-1)], [40, 990]);
});

test("a pod has its containers at the same times: zeros before the first and after the last", () => {
  const history = new UsageHistory();
  const sampled: readonly Record<string, number>[] = [{ main: 5 }, { main: 6, side: 1 }, { side: 2 }];
  for (const [round, of] of sampled.entries()) history.add(round * 10_000, () => line(0), [pod("u", round, of)]);
  assert.deepEqual(history.ofPod("u"), {
    at: [0, 1, 2],
    containers: {
      main: { nanoCores: [5, 6, 0], workingSetBytes: [10, 12, 0] },
      side: { nanoCores: [0, 1, 2], workingSetBytes: [0, 2, 4] },
    },
  });
  assert.deepEqual(history.report().pods, { u: [5, 7, 2] });
});

test("a pod that is gone is evicted", () => {
  const history = new UsageHistory();
  history.add(0, () => line(0), [pod("u", 0, { main: 1 })]);
  history.add(10_000, () => line(0), []);
  assert.equal(history.ofPod("u"), undefined);
  assert.deepEqual(history.report().pods, {});
});
