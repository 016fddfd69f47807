import assert from "node:assert/strict";
import { test } from "node:test";
import { CriServer } from "../../../test/support/cri-server.ts";
import { GrpcChannel } from "../grpc/channel.ts";
import {
  ListMetricDescriptorsResponse,
  ListPodSandboxMetricsResponse,
  ListPodSandboxStatsResponse,
  MetricType,
} from "./generated/cri.ts";
import { runtimeService as rpc } from "./methods.ts";
import { CriStats } from "./runtime-stats.ts";

const never = { signal: new AbortController().signal };
const value = (number: number) => ({ value: BigInt(number) });

async function answered<T>(server: CriServer, work: (stats: CriStats) => Promise<T>): Promise<T> {
  await server.start();
  const channel = new GrpcChannel(`unix://${server.socket}`);
  try {
    return await work(new CriStats(channel, (signal) => ({ signal })));
  } finally {
    channel.close();
    await server.stop();
  }
}

test("statistics of a sandbox and its containers go by their ids", async () => {
  const stall = { Total: 7n, Avg10: 1.5, Avg60: 0, Avg300: 0 };
  const answer = ListPodSandboxStatsResponse.fromPartial({
    stats: [
      {
        attributes: { id: "s1" },
        linux: {
          cpu: { usageCoreNanoSeconds: value(10) },
          memory: { workingSetBytes: value(20), usageBytes: value(30), availableBytes: value(80) },
          network: { defaultInterface: { name: "eth0", rxBytes: value(4), txBytes: value(5) } },
          process: { processCount: value(3) },
          containers: [
            {
              attributes: { id: "c1" },
              cpu: { usageCoreNanoSeconds: value(6), psi: { Some: stall, Full: stall } },
              memory: {
                workingSetBytes: value(12),
                rssBytes: value(11),
                pageFaults: value(13),
                majorPageFaults: value(14),
              },
              swap: { swapUsageBytes: value(9) },
            },
          ],
        },
      },
      { attributes: { id: "of another system" } },
    ],
  });
  const server = new CriServer().unary(rpc.listPodSandboxStats, (_call, callback) => callback(null, answer));
  const [sandbox, container, ...others] = await answered(server, (stats) => stats.usages(never));
  assert.deepEqual(others, []);
  assert.deepEqual([sandbox?.id, sandbox?.usage.cpu, sandbox?.usage.processes], ["s1", { usageNanos: 10 }, 3]);
  assert.deepEqual([sandbox?.usage.memory?.limit, sandbox?.usage.memory?.usage], [100, 30]);
  assert.deepEqual([sandbox?.network?.[0]?.name, sandbox?.network?.[0]?.txBytes], ["eth0", 5]);
  const times = { total: 7, avg10: 1.5, avg60: 0, avg300: 0 };
  assert.deepEqual([container?.id, container?.usage.cpu], ["c1", { usageNanos: 6, psi: { some: times, full: times } }]);
  assert.deepEqual(container?.usage.memory, {
    usage: 0,
    workingSet: 12,
    rss: 11,
    pageFaults: 13,
    majorPageFaults: 14,
    swap: 9,
  });
});

test("metrics come with their families; names that no page may have are left out, texts are bounded", async () => {
  const huge = "x".repeat(100_000);
  const descriptors = ListMetricDescriptorsResponse.fromPartial({
    descriptors: [
      { name: "container_threads", help: huge, labelKeys: ["id"] },
      { name: "bad name", help: "", labelKeys: [] },
      { name: "fine", help: "", labelKeys: ["bad-label"] },
    ],
  });
  const metric = { timestamp: 5_000_000n, metricType: MetricType.GAUGE, value: value(8) };
  const listed = ListPodSandboxMetricsResponse.fromPartial({
    podMetrics: [
      {
        podSandboxId: "s1",
        metrics: [{ ...metric, name: "container_threads", labelValues: ["s1"] }],
        containerMetrics: [
          { containerId: "c1", metrics: [{ ...metric, name: "container_threads", labelValues: [huge] }] },
        ],
      },
    ],
  });
  const server = new CriServer()
    .unary(rpc.listMetricDescriptors, (_call, callback) => callback(null, descriptors))
    .unary(rpc.listPodSandboxMetrics, (_call, callback) => callback(null, listed));
  const { families, samples } = await answered(server, (stats) => stats.metrics(never));
  assert.deepEqual(
    families.map(({ name }) => name),
    ["container_threads"],
  );
  assert.ok(Buffer.byteLength(families[0]?.help ?? huge) <= 1024);
  assert.deepEqual(samples[0], { name: "container_threads", type: "gauge", labels: ["s1"], value: 8, at: 5 });
  assert.ok(Buffer.byteLength(samples[1]?.labels[0] ?? huge) <= 1024);
});
