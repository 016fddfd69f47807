import { machine } from "../test/support/machine.ts";
import { pod } from "../test/support/pods.ts";
import { TopologyNode } from "../test/support/topology-node.ts";
import { median, type Row } from "./table.ts";

const LIMIT_MS = 5;
const ROUNDS = 20;
/** Of 4 CPUs each: the last ones find an almost full machine. */
const PODS = 56;
const GI = 2 ** 30;

/** CPU time for the admission of a pod with 4 exclusive CPUs on 256 CPUs and 8 NUMA nodes, state files included. */
export async function measureTopology(): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const memory of ["None", "Static"]) {
    for (const policy of ["none", "best-effort", "single-numa-node"]) {
      rows.push(...(await measure(memory, policy)));
    }
  }
  return rows;
}

async function measure(memory: string, policy: string): Promise<readonly Row[]> {
  const large = machine({ sockets: 2, nodes: 4, cores: 16, memoryBytes: 64 * GI });
  const flags = [
    "--cpu-manager-policy=static",
    `--memory-manager-policy=${memory}`,
    "--reserved-memory=0:memory=1Gi",
    `--topology-manager-policy=${policy}`,
  ];
  const node = new TopologyNode(large, flags, { cpus: 2, memoryMi: 1024 });
  const amounts = { cpu: "4", memory: "4Gi" };
  const pods = Array.from({ length: PODS }, (_, at) =>
    pod(`web-${at}`)
      .container("app", { resources: { limits: amounts, requests: amounts } })
      .build(),
  );
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const each of pods) {
      const began = process.cpuUsage();
      const rejection = await node.admit(each);
      const { user, system } = process.cpuUsage(began);
      if (rejection !== undefined) throw new Error(`${rejection.reason}: ${rejection.message}`);
      times.push((user + system) / 1000);
    }
    for (const { metadata } of pods) node.remove(metadata.uid ?? "");
    await node.clock.advance(0);
  }
  // The first round warms up.
  const warm = times.slice(PODS).sort((a, b) => a - b);
  const what = `admission of 4 CPUs on 256, memory ${memory}, topology ${policy}: CPU time`;
  return [
    { what: `${what}, median`, measured: median(warm), limit: LIMIT_MS, unit: "ms" },
    { what: `${what}, 99 of 100`, measured: warm[Math.floor(warm.length * 0.99)] ?? 0, limit: LIMIT_MS, unit: "ms" },
  ];
}
