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

test("names of devices do not move the cursor, nor reorder their line", () => {
  const devices = [{ resource: "example.com/card", id: "\u001b[2J\n\u202ecard", nodes: [], isHealthy: true }];
  const lines = renderTopology({ ...report, devices }).split("\n");
  assert.equal(lines.at(-2), "  example.com/card \ufffd[2J\ufffd\ufffdcard: free");
});

test("a device tells who has it, and that it is unhealthy; a pod that is not known is shown by its UID", () => {
  const holder = { uid: "u", namespace: "default", pod: "web", container: "app" };
  const card = { resource: "example.com/card", nodes: [0, 1] };
  const devices = [
    { ...card, id: "a", isHealthy: true, holder },
    { ...card, id: "b", isHealthy: false, holder },
    { ...card, id: "c", isHealthy: false, nodes: [] },
  ];
  const [held] = report.holdings;
  const holdings = [
    { ...held, pod: "", container: "log", cpus: [], memory: [{ type: "memory", bytes: GI, nodes: [0, 1] }] },
    { ...held, cpus: [1, 9], isShared: true, memory: [] },
  ] as TopologyReport["holdings"];
  assert.deepEqual(
    renderTopology({ ...report, devices, holdings })
      .split("\n")
      .slice(-8, -1),
    [
      "  default/u log: memory 1.0Gi on NUMA node 0, 1",
      "A default/web app: CPUs 1 9 shared within the pod",
      "",
      "devices",
      "  example.com/card a on NUMA node 0, 1: default/web app",
      "  example.com/card b on NUMA node 0, 1: unhealthy, default/web app",
      "  example.com/card c: unhealthy, free",
    ],
  );
});

test("a NUMA node without CPUs is drawn, and containers beyond the letters have a common mark", () => {
  const memory = [{ type: "memory", total: GI }];
  const [held] = report.holdings;
  const many = Array.from({ length: 60 }, (_, at) => ({
    ...held,
    container: `c${at}`,
    cpus: [at === 59 ? 1 : 100 + at],
  }));
  const nodesToo = [...report.nodes, { id: 7, distances: [], memory }];
  const lines = renderTopology({ ...report, nodes: nodesToo, holdings: many as TopologyReport["holdings"] }).split(
    "\n",
  );
  assert.ok(lines.includes("NUMA node 7: memory 1.0Gi"));
  assert.ok(lines.includes("    L3 0: 0[r.] 1[##]"), "one is of the 60th container, and one is nobody's");
  assert.ok(lines.includes("z default/web c51: CPUs 151; memory 1.0Gi on NUMA node 0"));
  assert.ok(lines.includes("# default/web c52: CPUs 152; memory 1.0Gi on NUMA node 0"));
});
