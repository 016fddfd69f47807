import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { StoragePart } from "../model/pod-storage.ts";
import { consumptionOf } from "./consumption.ts";

const two = pod("two", "two").container("a").container("b").build();
const memory = (workingSet: number) => ({
  memory: { usage: 0, workingSet, rss: 0, pageFaults: 0, majorPageFaults: 0, swap: 0 },
});
const sample = {
  usage: { ...memory(30), pids: 7 },
  containers: [
    { name: "a", usage: memory(10) },
    { name: "b", usage: memory(20) },
  ],
};
const part = (kind: StoragePart["kind"], name: string, bytes: number): StoragePart => ({
  kind,
  name,
  isMemory: name === "shm",
  usage: { bytes, inodes: bytes / 100, at: 0, by: "walk" },
});
const stored = {
  parts: [
    part("log", "a", 100),
    part("layer", "a", 200),
    part("layer", "b", 300),
    { ...part("layer", "b", 1000), isOld: true },
    part("emptyDir", "data", 400),
    part("emptyDir", "a", 500),
    part("emptyDir", "shm", 600),
    part("file", "etc-hosts", 700),
    { kind: "log", name: "b", isMemory: false } as const,
  ],
  bytes: 0,
  inodes: 0,
  isFresh: true,
};

test("memory and tasks come from samples, disk from storage; volumes in memory are no disk, files of the agent are", () => {
  const deleted = { node: { bytes: 7, inodes: 1 }, layers: { bytes: 8, inodes: 2 } };
  const disk = { storage: new Map([["two", stored]]), deleted: new Map([["two", deleted]]) };
  const found = consumptionOf([two], new Map([["two", sample]]), disk).get("two");
  assert.deepEqual(found?.deleted, deleted);
  assert.deepEqual([found?.memory, found?.tasks, found?.volumes], [30, 7, { bytes: 1600, inodes: 16 }]);
  const sizes = found?.containers.map(({ name, memory: used, logs, layer }) => [name, used, logs?.bytes, layer?.bytes]);
  assert.deepEqual(sizes, [
    ["a", 10, 100, 200],
    ["b", 20, undefined, 1300],
  ]);
});

test("a pod of which nothing was measured has no consumption; one without storage has no disk", () => {
  const other = pod("other", "other").container("c").build();
  const found = consumptionOf([two, other], new Map([["two", sample]]), undefined);
  assert.deepEqual([...found.keys()], ["two"]);
  assert.deepEqual(found.get("two")?.volumes, { bytes: 0, inodes: 0 });
});

test("where the runtime measures a pod, its processes count as tasks", () => {
  const measured = { usage: { ...memory(30), processes: 5000 }, containers: [] };
  assert.equal(consumptionOf([two], new Map([["two", measured]]), undefined).get("two")?.tasks, 5000);
});
