import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ObservedPod } from "../../model/observed.ts";
import { Inventory } from "./inventory.ts";

const NOTHING = { sandboxes: [], containers: [] };
const empty: ObservedPod = { uid: "a", name: "a", namespace: "n", readAt: 0, sandboxes: [], containers: [] };

/** Lists pod `a` as empty, with `during` happening while the list is under way. */
function listed(inventory: Inventory, during: () => void = () => undefined): void {
  const ticket = inventory.beginList("a");
  during();
  inventory.listed(empty, ticket);
}

describe("what a pod has in the runtime is certain", () => {
  const cases: [string, (inventory: Inventory) => void, ReturnType<Inventory["partsOf"]>][] = [
    ["not before anything was listed", () => undefined, undefined],
    ["once everything was listed and it was not there", (i) => i.listedAll(["b"]), NOTHING],
    ["not when the list of everything names it", (i) => i.listedAll(["a"]), undefined],
    ["once it was listed itself", (i) => listed(i), NOTHING],
    ["not when a part was made during its list", (i) => listed(i, () => i.made("a", "s", undefined)), undefined],
    ["not when it was doubted during its list", (i) => listed(i, () => i.doubt("a")), undefined],
    ["not when the connection was lost during its list", (i) => listed(i, () => i.doubtAll()), undefined],
    [
      "with what was made since",
      (i) => {
        listed(i);
        i.made("a", "s", undefined);
        i.made("a", "c", "s");
      },
      { sandboxes: ["s"], containers: [{ id: "c", sandboxId: "s" }] },
    ],
    [
      "not when it was made before everything was listed, and is too new for the list",
      (i) => {
        i.made("a", "s", undefined);
        i.listedAll([]);
      },
      undefined,
    ],
    [
      "not after a doubt, also when everything is listed without it",
      (i) => {
        i.listedAll([]);
        i.doubt("a");
        i.listedAll([]);
      },
      undefined,
    ],
    [
      "not after the connection was lost",
      (i) => {
        i.listedAll([]);
        listed(i);
        i.doubtAll();
      },
      undefined,
    ],
    [
      "again once it is gone",
      (i) => {
        i.listedAll(["a"]);
        i.forget("a");
      },
      NOTHING,
    ],
  ];
  for (const [name, act, want] of cases) {
    test(name, () => {
      const inventory = new Inventory();
      act(inventory);
      assert.deepEqual(inventory.partsOf("a"), want);
    });
  }
});
