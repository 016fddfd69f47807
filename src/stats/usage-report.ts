import type {
  DiskSpace,
  NetworkCounters,
  NodeUsageLine,
  NodeUsageReport,
  UsageLine,
  UsagePressure,
} from "../model/node-usage.ts";
import type { FilesystemSpace, InterfaceUsage } from "../model/usage.ts";
import type { NodeSample, PodSample, UsageSample } from "./samples.ts";

/** What a report is made from. */
export interface UsageFacts {
  readonly node: NodeSample;
  readonly pods: Iterable<PodSample>;
  readonly diskTraffic: NodeUsageLine["diskTraffic"];
  readonly cores: number;
  readonly memoryBytes: number;
}

/** The newest sample as `kubelet top` and the page show it, pods with the most CPU usage first. Pure. */
export function usageReport({ node, pods, ...facts }: UsageFacts): NodeUsageReport {
  const lines = [...pods].map(({ uid, namespace, name, usage, network, containers }) => ({
    uid,
    namespace,
    name,
    ...lineOf(usage),
    ...(network && { network: countersOf(network) }),
    containers: containers.map((one) => ({ name: one.name, ...lineOf(one.usage) })),
  }));
  const most = (of: UsageLine): number => of.nanoCores ?? 0;
  lines.sort((a, b) => most(b) - most(a) || b.workingSetBytes - a.workingSetBytes || (a.name < b.name ? -1 : 1));
  return { node: nodeLine(node, facts.diskTraffic), cores: facts.cores, memoryBytes: facts.memoryBytes, pods: lines };
}

/** The node alone. Pure. */
export function nodeLine(node: NodeSample, diskTraffic: NodeUsageLine["diskTraffic"]): NodeUsageLine {
  const { node: disk, image } = node.disks;
  return {
    ...lineOf(node.usage),
    network: countersOf(node.network),
    swap: { totalBytes: node.swap.total, freeBytes: node.swap.free },
    ...(disk && { disk: spaceOf(disk) }),
    ...(image && { imageDisk: spaceOf(image) }),
    ...(diskTraffic && { diskTraffic }),
  };
}

function lineOf({ at, nanoCores, cpu, memory, pids, io }: UsageSample): UsageLine {
  const pressure: UsagePressure = {
    ...(cpu?.psi && { cpu: cpu.psi.some.avg10 }),
    ...(memory?.psi && { memory: memory.psi.some.avg10 }),
    ...(io && { io: io.psi.some.avg10 }),
  };
  return {
    at: at.wall,
    ...(nanoCores !== undefined && { nanoCores }),
    workingSetBytes: memory?.workingSet ?? 0,
    ...(memory?.limit !== undefined && { memoryLimitBytes: memory.limit }),
    ...(pids !== undefined && { tasks: pids }),
    ...(Object.keys(pressure).length > 0 && { pressure }),
  };
}

function countersOf(network: readonly InterfaceUsage[]): NetworkCounters {
  return network.reduce(
    (sum, { rxBytes, txBytes }) => ({ rxBytes: sum.rxBytes + rxBytes, txBytes: sum.txBytes + txBytes }),
    { rxBytes: 0, txBytes: 0 },
  );
}

function spaceOf({ capacityBytes, availableBytes }: FilesystemSpace): DiskSpace {
  return { capacityBytes, availableBytes };
}
