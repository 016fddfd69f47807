import assert from "node:assert/strict";
import { test } from "node:test";
import { machine } from "../../test/support/machine.ts";
import type { TopologyReport } from "../model/topology-report.ts";
import { renderTopology } from "./render-topology.ts";

const GI = 2 ** 30;
const { cpus, nodes } = machine({ sockets: 2, caches: 2, cores: 2 });
const report: TopologyReport = {
  policies: { cpu: "static", memory: "Static", topology: "restricted", scope: "container" },
  cpus: cpus.map((place) => ({
    ...place,
    use: place.cpu === 0 ? "reserved" : place.core === 1 ? "exclusive" : "shared",
  })),
  offline: [],
  nodes: nodes.map(({ id, distances }) => ({
    id,
    distances,
    memory: [
      { type: "memory", total: 16 * GI, allocatable: 15 * GI, free: 14 * GI },
      { type: "hugepages-2Mi", total: 0 },
      { type: "hugepages-1Gi", total: 2 * GI },
    ],
  })),
  holdings: [
    {
      uid: "u",
      namespace: "default",
      pod: "web",
      container: "app",
      cpus: [1, 9],
      memory: [{ type: "memory", bytes: GI, nodes: [0] }],
    },
  ],
  devices: [{ resource: "example.com/card", id: "card-0", nodes: [1], isHealthy: true }],
};

test("the machine is drawn by sockets, NUMA nodes and L3 caches, with who has what", () => {
  assert.equal(
    renderTopology(report),
    `CPU policy static, memory policy Static, topology policy restricted (scope container)

socket 0
  NUMA node 0: memory 16Gi (14Gi free), hugepages-1Gi 2.0Gi
    L3 0: 0[r.] 1[AA]
    L3 1: 2[..] 3[..]
socket 1
  NUMA node 1: memory 16Gi (14Gi free), hugepages-1Gi 2.0Gi
    L3 2: 4[..] 5[..]
    L3 3: 6[..] 7[..]

. shared by containers without CPUs of their own   r reserved   A-z of one container or pod
A default/web app: CPUs 1 9; memory 1.0Gi on NUMA node 0

devices
  example.com/card card-0 on NUMA node 1: free
`,
  );
});

test("without a policy all CPUs are shared", () => {
  const policies = { cpu: "none", memory: "None", topology: "none", scope: "container" };
  const any = report.cpus.map((cpu) => ({ ...cpu, use: "any" as const }));
  assert.match(
    renderTopology({ ...report, policies, cpus: any, holdings: [], offline: [16] }),
    /offline CPUs: 16\n\n\. shared by all\n/,
  );
});
