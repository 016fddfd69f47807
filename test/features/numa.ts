/**
 * Two NUMA nodes, as the emulated machine has them: CPUs, memory and huge pages of one pod on one node, as the container
 * sees them, the message of a pod that fits on none, and all of it after a restart of the agent.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { readMachineTopology } from "../../src/adapters/host/machine-topology.ts";
import { formatCpuSet } from "../../src/model/cpu-set.ts";
import type { PodSpec } from "../../src/model/generated/types.ts";
import { hugePageResource } from "../../src/model/machine-topology.ts";
import type { TopologyReport } from "../../src/model/topology-report.ts";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { said, statusOf } from "../integration/support/told.ts";

requireMachine();

const MIB = 2 ** 20;
const { cpus, nodes } = readMachineTopology();
const cpusOf = (id: number): ReadonlySet<number> =>
  new Set(cpus.filter(({ numa }) => numa === id).map(({ cpu }) => cpu));
const [first, second] = nodes;

function whyNot(): string | false {
  if (first === undefined || second === undefined) return "this machine has one NUMA node";
  if (nodes.some(({ id }) => cpusOf(id).size < 2)) return "a NUMA node of this machine has fewer than two CPUs";
  return existsSync("/sys/fs/cgroup/cgroup.controllers") ? false : "this machine has no unified cgroups";
}

/** Pages of a size that the node has. */
function pagesOf(id: number, size: string): number {
  const pools = nodes.find((node) => node.id === id)?.hugePages ?? [];
  return pools.find(({ pageBytes }) => hugePageResource(pageBytes) === `hugepages-${size}`)?.pages ?? 0;
}

describe("two NUMA nodes", { skip: whyNot() }, () => {
  const site = new Site();
  const [reserved = 0] = cpusOf(0);
  const flags = [
    ...["--cpu-manager-policy=static", `--reserved-cpus=${reserved}`],
    ...["--memory-manager-policy=Static", "--reserved-memory=0:memory=256Mi"],
    ...["--kube-reserved=memory=156Mi", "--eviction-hard=memory.available<100Mi"],
    "--topology-manager-policy=single-numa-node",
  ];
  let agent: Agent;

  /** What a container sees of itself: the CPUs and the memory nodes it may use, and its mounts of huge pages. */
  const LOOK = `
grep _allowed_list /proc/self/status | tr -d ' \\t'
echo "cpuset $(cat /sys/fs/cgroup/cpuset.cpus) $(cat /sys/fs/cgroup/cpuset.mems)"
grep hugetlbfs /proc/mounts | cut -d ' ' -f 2-4
echo end`;
  const specOf = (limits: Record<string, string>, media: readonly string[] = []): Partial<PodSpec> => {
    const volumes = media.map((medium) => ({ name: medium.toLowerCase(), emptyDir: { medium } }));
    const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
    const write = volumes.map(({ name }) => `fallocate -l 1 /${name}/page && echo "used /${name}"`).join("\n");
    const resources = { limits, requests: limits };
    return { volumes, containers: [shell("main", forever(`${write}\n${LOOK}`), { resources, volumeMounts })] };
  };
  const state = (name: string): unknown =>
    JSON.parse(readFileSync(join(site.state, "kubelet", `${name}_manager_state`), "utf8"));
  /** Holdings are listed as they were loaded. */
  const report = async (): Promise<TopologyReport> => {
    const found = await site.ask<TopologyReport>("/v1/topology");
    return { ...found, holdings: [...found.holdings].sort((a, b) => (a.uid < b.uid ? -1 : 1)) };
  };

  /** What the container says before its last word. */
  const wordsOf = (name: string): Promise<string> => said(site, name, /^end$/m);

  before(async () => {
    agent = await site.up(flags);
  });
  after(() => site.close());

  it("a pod that fits on no node is rejected with what each lacks", async () => {
    const free = nodes.map(({ id }) => cpusOf(id).size - Number(cpusOf(id).has(reserved)));
    const wanted = free.reduce((sum, count) => sum + count, 0);
    site.write(manifest("wide", specOf({ cpu: String(wanted), memory: "64Mi" })));
    await site.pod("wide", "is rejected", ({ phase }) => phase === "Failed");
    const { reason, message } = (await statusOf(agent, "wide")) ?? {};
    assert.equal(reason, "TopologyAffinityError");
    const lacks = free.map(
      (count, node) => `NUMA node ${node}: cpu short by ${wanted - count} (requested ${wanted}, free ${count})`,
    );
    const words = "Pod was rejected: Resources cannot be allocated with Topology locality";
    assert.equal(message, `${words}: ${lacks.join("; ")}`);
    site.remove("wide");
    await site.gone("wide");
  });

  it("a pod has CPUs, memory and huge pages of one node, as its container sees", async () => {
    assert.ok(pagesOf(1, "2Mi") >= 4, "the machine has huge pages of 2 MiB on its second node");
    const limits = { cpu: "2", memory: "128Mi", "hugepages-2Mi": "8Mi" };
    // Node 0 has one CPU less: it is reserved.
    site.write(manifest("pair", specOf(limits, ["HugePages-2Mi"]), { uid: "pair" }));
    const words = await wordsOf("pair");
    const own = formatCpuSet(cpusOf(1));
    assert.match(words, new RegExp(`^Cpus_allowed_list:${own}\nMems_allowed_list:1\ncpuset ${own} 1$`, "m"));
    assert.match(words, /^used \/hugepages-2mi$/m);
    assert.match(words, /^\/hugepages-2mi hugetlbfs .*pagesize=2M/m);
    const limit = readFileSync(
      join("/sys/fs/cgroup", site.layout.cgroupRoot, "kubepods/podpair/hugetlb.2MB.max"),
      "utf8",
    );
    assert.equal(Number(limit), 8 * MIB);
  });

  it("a page of 1 GiB is had on the node that has it", {
    skip: pagesOf(0, "1Gi") === 0 && "no page of 1 GiB",
  }, async () => {
    const limits = { cpu: "1", memory: "64Mi", "hugepages-1Gi": "1Gi" };
    site.write(manifest("giant", specOf(limits, ["HugePages-1Gi"])));
    const words = await wordsOf("giant");
    const rest = formatCpuSet(new Set([...cpusOf(0)].filter((cpu) => cpu !== reserved)));
    assert.match(words, new RegExp(`^cpuset ${rest} 0$`, "m"));
    assert.match(words, /^\/hugepages-1gi hugetlbfs .*pagesize=1024M/m);
    assert.match(words, /^used \/hugepages-1gi$/m);
  });

  it("the drawing and the state files tell who has what, also after a restart of the agent", async () => {
    const drawing = await report();
    const before = [drawing, state("cpu"), state("memory")];
    const { holdings, nodes: drawn } = drawing;
    const pair = holdings.find(({ uid }) => uid.startsWith("pair"));
    assert.deepEqual(pair?.cpus, [...cpusOf(1)]);
    const memory = pair.memory.map(({ type, bytes, nodes: on }) => [type, bytes / MIB, on.join()]);
    assert.deepEqual(Object.fromEntries(memory.map(([type, ...rest]) => [type, rest])), {
      memory: [128, "1"],
      "hugepages-2Mi": [8, "1"],
    });
    assert.equal(drawn.length, nodes.length);
    await agent.end("SIGKILL");
    agent = await site.up(flags);
    await site.running("pair");
    assert.deepEqual([state("cpu"), state("memory")], before.slice(1));
    assert.deepEqual(await report(), drawing);
    const text = (await site.run("topology")).stdout;
    assert.match(text, /NUMA node 0: .*\n[\s\S]*NUMA node 1: .*hugepages-2Mi/);
  });
});
