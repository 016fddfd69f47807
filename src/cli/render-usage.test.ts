import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeUsageReport } from "../model/node-usage.ts";
import { cutLine } from "./cut-line.ts";
import { renderUsage } from "./render-usage.ts";
import { NODE, UsageHistory } from "./usage-history.ts";

const MEBI = 2 ** 20;
const layout = { color: false, nodeOnly: false, containers: false, sortBy: "cpu" } as const;

function report(at: number, nanoCores: number): NodeUsageReport {
  const line = { at, nanoCores, workingSetBytes: 64 * MEBI };
  const containers = [{ ...line, name: "main", memoryLimitBytes: 128 * MEBI }];
  const network = { rxBytes: at * 1024, txBytes: 0 };
  const web = { ...line, uid: "u1", namespace: "default", name: "web", tasks: 3, network, containers };
  const big = { at, workingSetBytes: 80 * MEBI, uid: "u2", namespace: "kube", name: "big", containers: [] };
  return {
    node: {
      ...line,
      nanoCores: 1e9,
      network,
      swap: { totalBytes: 0, freeBytes: 0 },
      disk: { capacityBytes: 100 * MEBI, availableBytes: 75 * MEBI },
      pressure: { cpu: 0.5, io: 2 },
    },
    cores: 4,
    memoryBytes: 256 * MEBI,
    pods: [web, big],
  };
}

test("shares of the node, usage of pods", () => {
  assert.deepEqual(renderUsage(report(1, 250e6), new UsageHistory(), layout), [
    "CPU       1000m of 4 cores (25 %)",
    "Memory    64Mi of 256Mi (25 %)",
    "Disk      25Mi of 100Mi (25 %)",
    "Pressure  cpu 0.5 %, io 2.0 %",
    "",
    "NAMESPACE   NAME   CPU    MEMORY   TASKS",
    "default     web    250m   64Mi     3",
    "kube        big    -      80Mi     -",
  ]);
});

test("containers stand below their pod, in the order that was asked for", () => {
  const lines = renderUsage(report(1, 250e6), new UsageHistory(), { ...layout, containers: true, sortBy: "memory" });
  assert.deepEqual(lines.slice(-3), [
    "kube        big      -      80Mi            -",
    "default     web      250m   64Mi            3",
    "              main   250m   64Mi of 128Mi   -",
  ]);
});

test("the node alone has no table of pods", () => {
  const lines = renderUsage(report(1, 1), new UsageHistory(), { ...layout, nodeOnly: true });
  assert.equal(lines.at(-1), "Pressure  cpu 0.5 %, io 2.0 %");
});

test("a sparkline has a bar a sample; the same sample is drawn once", () => {
  const history = new UsageHistory();
  for (const [at, nanoCores] of [
    [1000, 0],
    [2000, 5e8],
    [2000, 5e8],
    [3000, 1e9],
  ] as const)
    history.add(report(at, nanoCores));
  assert.equal(history.sparkline("u1", "cpu"), "▁▅█");
  assert.equal(history.sparkline(NODE, "memory", 128 * MEBI), "▅▅▅");
  const lines = renderUsage(report(3000, 1e9), history, layout);
  assert.match(lines.join("\n"), /Network +1000Ki\/s in, 0\/s out/);
  assert.match(lines.join("\n"), /web +1000m +64Mi +3 +1000Ki\/s +0\/s +▁▅█/);
  assert.ok(
    renderUsage(report(3000, 1e9), history, { ...layout, color: true })
      .join("")
      .includes("\u001b[36m▁▅█"),
  );
  history.add({ ...report(4000, 1), pods: [] });
  assert.equal(history.sparkline("u1", "cpu"), "", "the pod ended");
});

test("a line is cut at the terminal's width, and its colour ends there", () => {
  assert.equal(cutLine("\u001b[1mabc\u001b[22md", 2), "\u001b[1mab\u001b[0m");
  assert.equal(cutLine("abcd", 4), "abcd");
  assert.equal(cutLine("漢字漢", 5), "漢字");
});
