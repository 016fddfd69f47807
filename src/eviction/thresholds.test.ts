import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Layout, layoutOf, type NodeSignals, observationsOf } from "./signals.ts";
import {
  formatValue,
  isMet,
  keyOf,
  type Threshold,
  type ThresholdSettings,
  thresholdsOf,
  withContainerThresholds,
} from "./thresholds.ts";

const at = { wall: 0, mono: 5 };
const none: ThresholdSettings = {
  evictionHard: {},
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  evictionMinimumReclaim: {},
  enforceNodeAllocatable: [],
};

const parsed: { name: string; given: Partial<ThresholdSettings>; want: string[] }[] = [
  { name: "no settings", given: {}, want: [] },
  {
    name: "hard thresholds, with a copy for what all pods may use where that is enforced",
    given: { evictionHard: { "memory.available": "150Mi", "pid.available": "10" }, enforceNodeAllocatable: ["pods"] },
    want: ["memory.available 0 150Mi", "pid.available 0 10", "allocatableMemory.available 0 150Mi"],
  },
  {
    name: "soft thresholds with their grace period have no such copy",
    given: {
      evictionSoft: { "memory.available": "300Mi" },
      evictionSoftGracePeriod: { "memory.available": "1m30s" },
      enforceNodeAllocatable: ["pods"],
    },
    want: ["memory.available 90000 300Mi"],
  },
  {
    name: "a soft threshold without a grace period is a hard one",
    given: {
      evictionSoft: { "memory.available": "300Mi" },
      evictionSoftGracePeriod: { "memory.available": "0s" },
      enforceNodeAllocatable: ["pods"],
    },
    want: ["memory.available 0 300Mi", "allocatableMemory.available 0 300Mi"],
  },
  {
    name: "without a copy if allocatable ignores eviction",
    given: {
      evictionHard: { "memory.available": "150Mi" },
      enforceNodeAllocatable: ["pods"],
      experimentalAllocatableIgnoreEviction: true,
    },
    want: ["memory.available 0 150Mi"],
  },
  {
    name: "0% and 100% disable a threshold",
    given: { evictionHard: { "memory.available": "0%", "nodefs.available": "100%", "imagefs.available": "50%" } },
    want: ["imagefs.available 0 0.5"],
  },
  {
    name: "names that are no signals are left out: the configuration has refused them",
    given: { evictionHard: { constructor: "1Mi" } },
    want: [],
  },
];
for (const { name, given, want } of parsed) {
  test(`thresholds: ${name}`, () => assert.deepEqual(thresholdsOf({ ...none, ...given }).map(keyOf), want));
}

test("the minimum reclaim of a signal belongs to all its thresholds, and to the copy for pods", () => {
  const found = thresholdsOf({
    ...none,
    evictionHard: { "memory.available": "100Mi" },
    evictionSoft: { "memory.available": "200Mi" },
    evictionSoftGracePeriod: { "memory.available": "30s" },
    evictionMinimumReclaim: { "memory.available": "5%" },
    enforceNodeAllocatable: ["pods"],
  });
  assert.deepEqual(
    found.map(({ minReclaim }) => minReclaim && "share" in minReclaim && minReclaim.share.toFixed(3)),
    ["0.050", "0.050", "0.050"],
  );
});

describe("thresholds of writable layers", () => {
  const settings: ThresholdSettings = {
    ...none,
    evictionHard: { "nodefs.available": "10%", "imagefs.available": "15%", "containerfs.available": "1Mi" },
    evictionSoft: { "nodefs.inodesFree": "5" },
    evictionSoftGracePeriod: { "nodefs.inodesFree": "10s" },
  };
  const signals = (layout: Layout): string[] =>
    withContainerThresholds(thresholdsOf(settings), layout)
      .map(keyOf)
      .filter((key) => key.startsWith("containerfs."));

  test("on the node's filesystem they are those of nodefs, whatever was configured", () => {
    assert.deepEqual(signals("single"), [
      `containerfs.available 0 ${Math.fround(Math.fround(10) / 100)}`,
      "containerfs.inodesFree 10000 5",
    ]);
  });

  test("if only images are elsewhere, too", () => assert.deepEqual(signals("split"), signals("single")));

  test("beside the images they are those of imagefs", () => {
    assert.deepEqual(signals("dedicated"), [`containerfs.available 0 ${Math.fround(Math.fround(15) / 100)}`]);
  });
});

const compared: { name: string; value: string; reclaim?: string; available: number; want: [boolean, boolean] }[] = [
  { name: "less than the threshold", value: "1Gi", available: 2 ** 30 - 1, want: [true, true] },
  { name: "exactly the threshold", value: "1Gi", available: 2 ** 30, want: [false, false] },
  { name: "the minimum reclaim is missing", value: "1Gi", reclaim: "500Mi", available: 2 ** 30, want: [false, true] },
  { name: "with the minimum reclaim", value: "1Gi", reclaim: "1Gi", available: 2 ** 31, want: [false, false] },
  { name: "a share of the capacity", value: "10%", available: 0.0999 * 2 ** 33, want: [true, true] },
  { name: "a share is reclaimed", value: "10%", reclaim: "5%", available: 0.14 * 2 ** 33, want: [false, true] },
];
for (const { name, value, reclaim, available, want } of compared) {
  test(`met: ${name}`, () => {
    const signal = "memory.available";
    const [threshold] = thresholdsOf({
      ...none,
      evictionHard: { [signal]: value },
      evictionMinimumReclaim: reclaim === undefined ? {} : { [signal]: reclaim },
    });
    assert.ok(threshold !== undefined);
    const observed = { available, capacity: 2 ** 33, at };
    assert.deepEqual(
      [isMet(threshold, observed, { reclaim: false }), isMet(threshold, observed, { reclaim: true })],
      want,
    );
  });
}

test("a quantity is shown as configured, a share as the quantity that Kubernetes computes", () => {
  const [memory, disk] = thresholdsOf({
    ...none,
    evictionHard: { "memory.available": "1024Mi", "nodefs.available": "10%" },
  });
  const text = (of: Threshold | undefined): string => (of === undefined ? "" : formatValue(of.value, 1000 * 2 ** 20));
  assert.deepEqual([text(memory), text(disk)], ["1Gi", "104857601"]);
});

describe("observations", () => {
  const space = (device: number) => ({
    device,
    capacityBytes: 100,
    availableBytes: 40,
    usedBytes: 50,
    inodes: 10,
    inodesFree: 4,
  });
  const signals: NodeSignals = {
    at,
    memory: { capacity: 1000, workingSet: 400 },
    podsMemory: { capacity: 500, workingSet: 600 },
    tasks: { most: 100, running: 30 },
    filesystems: { at, node: space(1), image: space(2) },
  };

  test("what is available of each signal", () => {
    const all = [...observationsOf(signals)].map(([signal, { available, capacity }]) => [signal, available, capacity]);
    assert.deepEqual(all, [
      ["memory.available", 600, 1000],
      ["allocatableMemory.available", 0, 500],
      ["pid.available", 70, 100],
      ["nodefs.available", 40, 100],
      ["nodefs.inodesFree", 4, 10],
      ["imagefs.available", 40, 100],
      ["imagefs.inodesFree", 4, 10],
      ["containerfs.available", 40, 100],
      ["containerfs.inodesFree", 4, 10],
    ]);
  });

  test("more tasks than the kernel allows leave none, not less than none", () => {
    const { available } = observationsOf({ at, tasks: { most: 100, running: 130 } }).get("pid.available") ?? {};
    assert.equal(available, 0);
  });

  test("what cannot be read is no observation, nor are inodes of a filesystem that has none", () => {
    const bare = { at, filesystems: { at, node: { ...space(1), inodes: 0, inodesFree: 0 } } };
    assert.deepEqual([...observationsOf(bare).keys()], ["nodefs.available"]);
  });

  test("images have a filesystem of their own if its device differs", () => {
    assert.equal(layoutOf(signals), "dedicated");
    assert.equal(layoutOf({ at, filesystems: { at, node: space(1), image: space(1) } }), "single");
    assert.equal(layoutOf({ at }), "single");
    assert.equal(layoutOf({ at, filesystems: { at, image: space(2) } }), "single", "one of them is not known yet");
    assert.equal(layoutOf({ at, filesystems: { at, node: space(2) } }), "single");
    const split = { at, filesystems: { at, node: space(1), image: space(2), container: space(1) } };
    assert.equal(layoutOf(split), "split");
  });
});
