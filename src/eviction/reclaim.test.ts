import assert from "node:assert/strict";
import { test } from "node:test";
import { reclaimFor } from "./reclaim.ts";
import type { Layout, Signal } from "./signals.ts";

const BOTH = ["deleteAllUnusedContainers", "deleteUnusedImages"];
const cases: { signal: Signal; want: Record<Layout, readonly string[]> }[] = [
  { signal: "memory.available", want: { single: [], dedicated: [], split: [] } },
  { signal: "pid.available", want: { single: [], dedicated: [], split: [] } },
  { signal: "nodefs.available", want: { single: BOTH, dedicated: [], split: ["deleteAllUnusedContainers"] } },
  { signal: "imagefs.inodesFree", want: { single: BOTH, dedicated: BOTH, split: ["deleteUnusedImages"] } },
  { signal: "containerfs.available", want: { single: BOTH, dedicated: BOTH, split: ["deleteAllUnusedContainers"] } },
];
for (const { signal, want } of cases) {
  test(`what the node itself frees for ${signal}`, () => {
    const layouts: Layout[] = ["single", "dedicated", "split"];
    assert.deepEqual(Object.fromEntries(layouts.map((layout) => [layout, reclaimFor(signal, layout)])), want);
  });
}
