import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeSample } from "./samples.ts";
import type { SummaryFacts } from "./summary.ts";
import { SummaryPages } from "./summary-page.ts";

const at = { wall: Date.UTC(2026, 0, 1), mono: 0 };

function sample(usageNanos: number): NodeSample {
  return {
    bootedAt: 0,
    usage: { at, cpu: { usageNanos } },
    swap: { total: 0, free: 0 },
    network: [],
    system: [],
    classes: [],
    filesystems: [],
    disks: { at },
  };
}

/** The pods are an iterator that can be read once: reading it again would leave them out. */
function facts(node: NodeSample, more: Partial<SummaryFacts> = {}): SummaryFacts {
  const usage = { at, cpu: { usageNanos: 5 } };
  const pod = { uid: "u1", name: "web", namespace: "default", startedAt: 0, usage, containers: [] };
  const about = { nodeName: "n1", memoryBytes: 1, agentStartedAt: 0 };
  return { ...about, node, pods: [pod].values(), onlyCpuAndMemory: false, ...more };
}

const parsed = (bytes: Uint8Array) =>
  JSON.parse(Buffer.from(bytes).toString()) as { node: { cpu: { usageCoreNanoSeconds: number } }; pods: object[] };

test("a sample is written once, however many ask; the next sample is written anew", () => {
  const pages = new SummaryPages();
  const first = sample(1);
  const page = pages.read(facts(first));
  assert.equal(parsed(page).node.cpu.usageCoreNanoSeconds, 1);
  assert.equal(parsed(page).pods.length, 1);
  assert.equal(pages.read(facts(first)), page);
  assert.equal(parsed(pages.read(facts(sample(2)))).node.cpu.usageCoreNanoSeconds, 2);
});

test("the page with CPU and memory alone is another one", () => {
  const pages = new SummaryPages();
  const node = sample(1);
  assert.ok("network" in parsed(pages.read(facts(node))).node);
  assert.ok(!("network" in parsed(pages.read(facts(node, { onlyCpuAndMemory: true }))).node));
  assert.ok("network" in parsed(pages.read(facts(node))).node);
});

test("storage that was measured since is shown", () => {
  const pages = new SummaryPages();
  const node: NodeSample = {
    ...sample(1),
    disks: {
      at,
      node: { device: 1, capacityBytes: 9, availableBytes: 8, usedBytes: 1, inodes: 7, inodesFree: 6 },
    },
  };
  const stored = (bytes: number) => new Map([["u1", { parts: [], bytes, inodes: 0, isFresh: true }]]);
  const shown = (bytes: number) =>
    (parsed(pages.read(facts(node, { storage: stored(bytes) }))).pods[0] as Record<string, { usedBytes: number }>)[
      "ephemeral-storage"
    ]?.usedBytes;
  assert.deepEqual([shown(3), shown(4)], [3, 4]);
});

test("it is indented by one space and ends with a line break, as the kubelet writes it", () => {
  const text = Buffer.from(new SummaryPages().read(facts(sample(1)))).toString();
  assert.match(text, /^\{\n "node": \{\n {2}"nodeName": "n1",\n/);
  assert.match(text, /\n \]\n\}\n$/);
});
