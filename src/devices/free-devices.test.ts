import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { DeviceMasks } from "./device-masks.ts";
import { FreeDevices } from "./free-devices.ts";
import { DeviceInventory } from "./inventory.ts";

const GPU = "example.com/gpu";

/** Devices by id with their NUMA nodes, `-` before those that are unhealthy. */
function bench(devices: Readonly<Record<string, readonly number[]>>) {
  const inventory = new DeviceInventory(new FakeClock());
  const list = (all: typeof devices): void => {
    const read = Object.entries(all).map(([id, nodes]) => ({
      id: id.replace("-", ""),
      isHealthy: !id.startsWith("-"),
      nodes,
    }));
    inventory.listed(GPU, read);
  };
  list(devices);
  const taken = new Set<string>();
  const state = { version: 0, searches: 0 };
  const free = new FreeDevices({
    inventory,
    masks: new DeviceMasks([0, 1]),
    taken: () => {
      state.searches++;
      return (id) => taken.has(id);
    },
    version: () => state.version,
  });
  return { free, list, taken, state };
}

describe("devices that are free", () => {
  test("are the first of each set of NUMA nodes, in the plugin's order", () => {
    const { free } = bench({ a: [0], b: [1], c: [0], d: [0, 1], "-e": [], f: [], g: [0], h: [7] });
    assert.deepEqual(free.first(GPU, 2), ["a", "b", "c", "d", "f", "h"]);
    assert.deepEqual(free.first(GPU, 9), ["a", "b", "c", "d", "f", "g", "h"]);
    assert.deepEqual(
      [...free.counts(GPU)].map(([mask, count]) => [mask & 0xffn, count]),
      [
        [1n, 3],
        [2n, 1],
        [3n, 1],
        [0n, 1],
        [0n, 1],
      ],
    );
    assert.deepEqual(free.first("example.com/none", 1), []);
  });

  test("are searched for once, and what is taken is not free any more", () => {
    const { free, state } = bench({ a: [0], b: [1], c: [0] });
    free.take(GPU, ["c"]);
    assert.deepEqual(free.first(GPU, 1), ["a", "b"]);
    free.take(GPU, ["a"]);
    assert.deepEqual(free.first(GPU, 1), ["b", "c"]);
    assert.equal(state.searches, 1);
  });

  const changes: Readonly<Record<string, (of: ReturnType<typeof bench>) => void>> = {
    "the plugin lists others": ({ list }) => list({ a: [0], b: [1], z: [1] }),
    "something was released": ({ state }) => state.version++,
    "it was cleared": ({ free }) => free.clear(),
  };
  for (const [name, change] of Object.entries(changes)) {
    test(`are searched for anew after ${name}`, () => {
      const of = bench({ a: [0], b: [1] });
      of.free.take(GPU, ["a"]);
      assert.deepEqual(of.free.first(GPU, 1), ["a", "b"]);
      of.free.take(GPU, ["a"]);
      of.taken.add("b");
      change(of);
      assert.deepEqual(
        of.free.first(GPU, 2).filter((id) => id < "z"),
        ["a"],
      );
    });
  }
});
