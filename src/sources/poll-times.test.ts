import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "../model/generated/types.ts";
import { pollTimes } from "./poll-times.ts";

const nodeWith = (ttl: string): Node => ({
  metadata: { name: "n", annotations: { "node.alpha.kubernetes.io/ttl": ttl } },
  spec: {},
});

const cases = [
  { name: "watched objects are not asked for", strategy: "Watch", node: undefined, want: undefined },
  { name: "Get asks each time", strategy: "Get", node: nodeWith("300"), want: { freshMs: 0, everyMs: 10_000 } },
  { name: "Cache keeps a minute", strategy: "Cache", node: undefined, want: { freshMs: 60_000, everyMs: 60_000 } },
  {
    name: "or what the node says",
    strategy: "Cache",
    node: nodeWith("300"),
    want: { freshMs: 300_000, everyMs: 300_000 },
  },
  { name: "also nothing at all", strategy: "Cache", node: nodeWith("0"), want: { freshMs: 0, everyMs: 10_000 } },
  { name: "but no nonsense", strategy: "Cache", node: nodeWith("soon"), want: { freshMs: 60_000, everyMs: 60_000 } },
] as const;
for (const { name, strategy, node, want } of cases) {
  test(name, () => {
    const current = { configMapAndSecretChangeDetectionStrategy: strategy, syncFrequency: 10_000 };
    assert.deepEqual(pollTimes({ current }, () => node)?.(), want);
  });
}
