import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ObservedPod } from "../../model/observed.ts";
import { ObservationCache } from "./observation-cache.ts";

const NOTHING = { sandboxes: [], containers: [] };
const empty: ObservedPod = { uid: "a", name: "a", namespace: "n", readAt: 0, sandboxes: [], containers: [] };

/** Lists pod `a` as empty, with `during` happening while the list is under way. */
function listed(cache: ObservationCache, during: () => void = () => undefined): void {
  const ticket = cache.beginRead("a");
  during();
  cache.store(empty, ticket);
}

/** Lists the whole runtime, which has these pods. */
function listedAll(cache: ObservationCache, ...uids: readonly string[]): void {
  cache.storeList(
    uids.map((uid) => ({ uid, id: `sandbox of ${uid}` })),
    cache.ids(),
  );
}

describe("what a pod consists of is known", () => {
  const cases: [string, (cache: ObservationCache) => void, ReturnType<ObservationCache["partsOf"]>][] = [
    ["not before anything was listed", () => undefined, undefined],
    ["once everything was listed and it was not there", (i) => listedAll(i, "b"), NOTHING],
    ["not when the list of everything names it", (i) => listedAll(i, "a"), undefined],
    ["once it was listed itself", (i) => listed(i), NOTHING],
    ["not when a part was created during its list", (i) => listed(i, () => i.created("a", "s")), undefined],
    ["not when it was invalidated during its list", (i) => listed(i, () => i.invalidate("a")), undefined],
    ["not when the connection was lost during its list", (i) => listed(i, () => i.invalidateAll()), undefined],
    [
      "with what was created since",
      (i) => {
        listed(i);
        i.created("a", "s");
        i.created("a", "c", "s");
      },
      { sandboxes: ["s"], containers: [{ id: "c", sandboxId: "s" }] },
    ],
    [
      "not when it was created before everything was listed, and is too new for the list",
      (i) => {
        i.created("a", "s");
        listedAll(i);
      },
      undefined,
    ],
    [
      "not after it was invalidated, also when everything is listed without it",
      (i) => {
        listedAll(i);
        i.invalidate("a");
        listedAll(i);
      },
      undefined,
    ],
    [
      "not after the connection was lost",
      (i) => {
        listedAll(i);
        listed(i);
        i.invalidateAll();
      },
      undefined,
    ],
    [
      "without what was removed since",
      (i) => {
        listed(i);
        i.created("a", "s");
        i.created("a", "t");
        i.created("a", "c", "s");
        i.created("a", "d", "t");
        i.created("a", "e", "t");
        i.removed("e");
        i.removed("s");
      },
      { sandboxes: ["t"], containers: [{ id: "d", sandboxId: "t" }] },
    ],
    [
      "once a list no longer has what only a list had",
      (i) => {
        listedAll(i, "a");
        listedAll(i, "b");
      },
      NOTHING,
    ],
    [
      "again once it was evicted",
      (i) => {
        listedAll(i, "a");
        i.evict("a");
      },
      NOTHING,
    ],
  ];
  for (const [name, act, want] of cases) {
    test(name, () => {
      const cache = new ObservationCache();
      act(cache);
      assert.deepEqual(cache.partsOf("a"), want);
    });
  }
});
