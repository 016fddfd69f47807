import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { unmountAll } from "./kind.ts";

describe("what is mounted at a directory itself", () => {
  const cases = [
    { name: "nothing: nothing is unmounted", layers: 0, left: 0 },
    { name: "one mount", layers: 1, left: 0 },
    { name: "several, one over the other", layers: 3, left: 0 },
    { name: "more than can be the agent's: it does not go on for ever", layers: 20, left: 12 },
  ];
  for (const { name, layers, left } of cases) {
    test(name, async () => {
      let mounted = layers;
      await unmountAll("/d", {
        isMountPoint: (path) => Promise.resolve(path === "/d" && mounted > 0),
        unmount: async () => void mounted--,
      });
      assert.equal(mounted, left);
    });
  }
});
