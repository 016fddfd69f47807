import assert from "node:assert/strict";
import { test } from "node:test";
import { OomCounts } from "./oom-counts.ts";

test("kills are counted by pod and container; the containers that were killed last are kept", () => {
  const counts = new OomCounts();
  counts.add("a", "main");
  counts.add("a", "main");
  counts.add("a", "side");
  assert.deepEqual([counts.of("a", "main"), counts.of("a", "side"), counts.of("b", "main")], [2, 1, 0]);
  for (let at = 0; at < 1998; at++) counts.add(`other-${at}`, "main");
  counts.add("a", "main");
  counts.add("one-more", "main");
  assert.deepEqual([counts.of("a", "main"), counts.of("a", "side")], [3, 0]);
});
