import { CgroupDetailsReader } from "../adapters/cgroup/details.ts";
import { ownCgroup } from "../adapters/cgroup/own-cgroup.ts";
import { CgroupUsageReader } from "../adapters/cgroup/usage.ts";
import type { CgroupMount } from "../adapters/host/cgroups.ts";
import { type DeletedFiles, deletedFiles } from "../adapters/host/deleted-files.ts";
import { readDiskTraffic } from "../adapters/host/disk-traffic.ts";
import { type Hardware, readHardware } from "../adapters/host/hardware.ts";
import { SharedReads } from "../adapters/host/kernel-file.ts";
import { type MachineInfo, machineInfo } from "../adapters/host/machine.ts";
import { readMountedFilesystems } from "../adapters/host/mounted-filesystems.ts";
import {
  readBootTime,
  readInterfaces,
  readNodeStall,
  readSwap,
  readTasks,
  SpaceReader,
} from "../adapters/host/node-usage.ts";
import { RemoteSpaceReader } from "../adapters/host/remote-space.ts";
import type { ImagePort, RuntimePort } from "../adapters/runtime/port.ts";
import { type agentOptions, isGateOn, type OptionStore } from "../config/index.ts";
import { type Abortable, manyListeners } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { reportedVersion } from "../lib/version.ts";
import type { Pod } from "../model/generated/types.ts";
import type { NodeUsageReport } from "../model/node-usage.ts";
import type { ObservedPod } from "../model/observed.ts";
import type { ContainerDetails } from "../model/page-lines.ts";
import type { CgroupUsage } from "../model/usage.ts";
import {
  type CadvisorResult,
  type CadvisorStore,
  type ContainerName,
  cadvisorApi,
  containerNamed,
} from "./cadvisor-api.ts";
import { cadvisorMetrics, runtimePage } from "./cadvisor-metrics.ts";
import { cgroupRows, withOomKills } from "./cgroup-rows.ts";
import { FilesystemSampler } from "./filesystems.ts";
import type { MachineDescription } from "./machine-description.ts";
import { podDetails } from "./pod-details.ts";
import { type PodStorageDeps, PodStorageReader } from "./pod-storage-reader.ts";
import { resourceMetrics } from "./resource-metrics.ts";
import { RuntimeStats } from "./runtime-stats.ts";
import { type CgroupSource, type SampledPod, Sampler } from "./sampler.ts";
import type { NodeSample } from "./samples.ts";
import { SandboxImage } from "./sandbox-image.ts";
import { declareStorageMetrics } from "./storage-metrics.ts";
import { SummaryPages } from "./summary-page.ts";
import { UsageHistory } from "./usage-history.ts";
import { nodeLine, usageReport } from "./usage-report.ts";

/** What the sampler and its views are built from. */
export interface StatsDeps {
  readonly clock: Clock;
  readonly host: { cgroupMounts(): readonly CgroupMount[] };
  readonly store: OptionStore<typeof agentOptions>;
  readonly machine: { readonly nodeName: string; readonly cores: number; readonly memoryBytes: number };
  readonly images: Pick<ImagePort, "imageFilesystems">;
  readonly observer: { list(): readonly ObservedPod[] };
  /** The cgroups of pods. */
  readonly cgroups: { parentOf(pod: Pod): string };
  /** The cgroups above those of pods: that of all pods, and those of QoS classes. */
  readonly classes: { readonly all: string; readonly burstable: string; readonly bestEffort: string };
  readonly metrics: Metrics;
  readonly runtime: Pick<RuntimePort, "sandboxImage" | "stats">;
  readonly log: Logger;
  readonly storage: PodStorageDeps["storage"];
  /** Volumes whose drivers count their space. */
  readonly spaces: { read: PodStorageDeps["driverSpace"] };
  podOf(uid: string): Pod | undefined;
  /** Processes of a pod's container that were killed for lack of memory, in all its instances. */
  readonly oomKills: { of(uid: string, container: string): number };
}

/** The gate for statistics of pods and containers from the runtime. */
const RUNTIME_GATE = "PodAndContainerStatsFromCRI";
/** Facts about the hardware are reused for so long, in milliseconds, as in cAdvisor. */
const HARDWARE_MS = 5 * 60_000;
/** An older sample is not shown live, in milliseconds. */
const LIVE_AGE_MS = 1500;

/** The pages that show samples. */
export interface StatsViews {
  /** JSON. */
  summary(options: Abortable & { readonly onlyCpuAndMemory: boolean }): Promise<Uint8Array>;
  resource(options: Abortable): Promise<string>;
  cadvisor(options: Abortable): Promise<Iterable<string>>;
  api(request: { readonly path: string; readonly query: URLSearchParams }, options: Abortable): Promise<CadvisorResult>;
  container(of: ContainerName, options: Abortable): Promise<unknown>;
}

/** The sampler, its loop, and the pages that show its samples. */
export function composeStats(deps: StatsDeps): {
  readonly sampler: Sampler;
  readonly pages: StatsViews;
  /** The usage of now, for views that show it live: sampled for them if the last sample is older than a second or two. */
  usage(options: Abortable): Promise<NodeUsageReport>;
  /** The usage of the last minutes. */
  readonly history: UsageHistory;
  /** Counters of a pod's running containers, read now. */
  details(uid: string): readonly ContainerDetails[];
  /** Files of the processes of a cgroup that were deleted and are still open. */
  deletedFiles(cgroup: string): Promise<DeletedFiles>;
  readonly loops: readonly Loop[];
} {
  const { clock, store, images } = deps;
  const { memoryBytes } = deps.machine;
  const { rootDir } = store.current;
  const never = manyListeners();
  const bootedAt = readBootTime();
  const spaces = new SpaceReader();
  const remote = new RemoteSpaceReader(clock);
  const filesystems = new FilesystemSampler(
    { clock, space: (path) => spaces.read(path), imageFilesystems: (options) => images.imageFilesystems(options) },
    { rootDir },
  );
  const mounts = deps.host.cgroupMounts();
  const [cgroups, details] = [cgroupSource(mounts), new CgroupDetailsReader(mounts)];
  const isFromRuntime = isGateOn(RUNTIME_GATE, store.current.featureGates);
  const port = isFromRuntime ? deps.runtime.stats : undefined;
  const fromRuntime = port && new RuntimeStats({ clock, log: deps.log, port });
  const history = new UsageHistory();
  const sampler = new Sampler(
    {
      clock,
      cgroups,
      node: {
        tasks: readTasks,
        swap: readSwap,
        interfaces: readInterfaces,
        withPressure,
        filesystems: () => readMountedFilesystems((path) => filesystems.space(path, never.signal), rootDir),
      },
      filesystems,
      pods: () => sampledPods(deps, sandboxImage.name),
      sampled: (node, pods) => history.add(node.usage.at.mono, () => nodeLine(node, readDiskTraffic()), pods),
      ...(fromRuntime && { runtimeUsages: () => fromRuntime.usages({ signal: never.signal }) }),
    },
    {
      memoryBytes,
      bootedAt,
      podsCgroup: deps.classes.all,
      classCgroups: [deps.classes.burstable, deps.classes.bestEffort],
      intervalMs: () => store.current.housekeepingInterval,
      systemCgroups: () => systemCgroups(deps),
    },
  );
  const { nodeName } = deps.machine;
  const agentStartedAt = clock.now().wall;
  const stored = new PodStorageReader({
    clock,
    storage: deps.storage,
    space: (path, signal) => filesystems.space(path, signal),
    remoteSpace: (path, signal) => remote.read(path, { signal }),
    driverSpace: (path, options) => deps.spaces.read(path, options),
    pods: () => [...sampler.pods.keys()].flatMap((uid) => deps.podOf(uid) ?? []),
    maxAgeMs: () => store.current.volumeStatsAggPeriod,
  });
  declareStorageMetrics(deps.metrics, fromRuntime ? "cri" : "cadvisor", {
    pods: () => sampler.pods,
    storage: () => stored.readLater(never.signal),
    spaceAt: (path) => stored.spaceAt(path),
  });
  const sandboxImage = new SandboxImage(deps);
  const summaries = new SummaryPages();
  const describeMachine = machineDescriber(deps);
  const summary = async ({ signal, onlyCpuAndMemory }: Abortable & { readonly onlyCpuAndMemory: boolean }) => {
    const sample = await sampler.current({ signal });
    if (sample === undefined) throw new Error("the node was not sampled yet");
    const { node, pods } = sample;
    const base = { nodeName, memoryBytes, agentStartedAt, node, pods: pods.values(), onlyCpuAndMemory };
    if (onlyCpuAndMemory) return summaries.read(base);
    const storage = await stored.read({ signal });
    return summaries.read({ ...base, storage, spaceAt: (path) => stored.spaceAt(path) });
  };
  const resource = async ({ signal }: Abortable): Promise<string> => {
    await sampler.refresh({ signal });
    const showsHidden = store.current.showHiddenMetricsForVersion !== "";
    return resourceMetrics(sampler.node, [...sampler.pods.values()], { showsHidden });
  };
  const detailed = async ({ signal }: Abortable): Promise<CadvisorStore> => {
    await sandboxImage.find({ signal });
    await sampler.withDetails({ signal });
    const { node, pods } = sampler;
    if (node === undefined) throw new Error("the node was not sampled yet");
    const rows = [...cgroupRows(node, pods.values(), deps.machine)].map((row) => withOomKills(row, deps.oomKills));
    return { machine: describeMachine(), rows };
  };
  const cadvisor = async (options: Abortable): Promise<Iterable<string>> => {
    const listed = await fromRuntime?.metrics(options);
    if (listed !== undefined) return runtimePage(describeMachine(), listed);
    return cadvisorMetrics({ ...(await detailed(options)), now: clock.now().wall });
  };
  const api: StatsViews["api"] = async ({ path, query }, options) => cadvisorApi(await detailed(options), path, query);
  const container = async (of: ContainerName, options: Abortable): Promise<unknown> =>
    containerNamed(await detailed(options), of);
  const { cores } = deps.machine;
  /** One a sample, for all who look. */
  const reports = new WeakMap<NodeSample, NodeUsageReport>();
  const usage = async ({ signal }: Abortable): Promise<NodeUsageReport> => {
    const age = sampler.node === undefined ? Infinity : clock.now().mono - sampler.node.usage.at.mono;
    if (age > LIVE_AGE_MS) await sampler.sample({ signal });
    const { node, pods } = sampler;
    if (node === undefined) throw new Error("the node was not sampled yet");
    const known = reports.get(node);
    if (known !== undefined) return known;
    const report = usageReport({ node, pods: pods.values(), diskTraffic: readDiskTraffic(), cores, memoryBytes });
    reports.set(node, report);
    return report;
  };
  return {
    sampler,
    usage,
    history,
    details: (uid) => podDetails(sampler.pods.get(uid), (cgroup) => details.read(cgroup)),
    deletedFiles: (cgroup) => deletedFiles(cgroups.processesBelow(cgroup), filesystems.latest?.node?.device ?? 0),
    pages: { summary, resource, cadvisor, api, container },
    loops: [{ name: "stats", run: (signal) => sampler.run(signal) }],
  };
}

/** Describes the machine. Its hardware is read again after a while: that takes hundreds of files. */
function machineDescriber({ clock, store, machine }: StatsDeps): () => MachineDescription {
  let known: { readonly at: number; readonly facts: MachineInfo & Hardware } | undefined;
  return () => {
    const now = clock.now();
    if (known === undefined || now.mono - known.at > HARDWARE_MS) {
      known = { at: now.mono, facts: { ...machineInfo(), ...readHardware() } };
    }
    const { memoryBytes } = machine;
    const version = reportedVersion(store.current.version);
    return { ...known.facts, memoryBytes, swapBytes: readSwap().total, at: now.wall, version };
  };
}

/** Reads usage and details of cgroups; where both are read, a file that both need is read once. */
function cgroupSource(
  mounts: readonly CgroupMount[],
): CgroupSource & { processesBelow(path: string): readonly number[] } {
  const plain = new CgroupUsageReader(mounts);
  const shared = new SharedReads();
  const [usage, details] = [new CgroupUsageReader(mounts, shared.read), new CgroupDetailsReader(mounts, shared.read)];
  return {
    read: (path) => plain.read(path),
    readWithDetails: (path) => {
      shared.clear();
      return { usage: usage.read(path), details: details.read(path) };
    },
    memory: (path) => plain.memory(path),
    childOf: (path, id) => plain.childOf(path, id),
    processIn: (path) => plain.processIn(path),
    createdAt: (path) => plain.createdAt(path),
    processesBelow: (path) => plain.processesBelow(path),
  };
}

/** Those of the configuration, by their names in the summary; the agent's own is known without it. */
function systemCgroups({ store }: StatsDeps): Readonly<Record<string, string>> {
  const { kubeletCgroups, runtimeCgroups, systemCgroups: misc } = store.current;
  return { kubelet: kubeletCgroups || (ownCgroup() ?? ""), runtime: runtimeCgroups, misc };
}

/** The pods of the runtime whose spec is known, with the newest instance of each container if it runs. */
function sampledPods({ observer, podOf, cgroups, store }: StatsDeps, image: string): readonly SampledPod[] {
  const isOwnCgroup = store.current.cgroupsPerQOS;
  return observer.list().flatMap(({ uid, name, namespace, sandboxes, containers }): SampledPod[] => {
    const pod = podOf(uid);
    const [sandbox] = sandboxes;
    if (pod === undefined || sandbox?.state !== "ready") return [];
    const newest = new Map(containers.toReversed().map((container) => [container.name, container]));
    const running = [...newest.values()].filter(({ state }) => state === "running");
    const names = { uid, name, namespace, cgroup: cgroups.parentOf(pod), isOwnCgroup };
    return [{ ...names, sandbox: { ...sandbox, image }, containers: running }];
  });
}

/** The pressure of the whole node, where its topmost cgroup does not have it. */
function withPressure(usage: CgroupUsage): CgroupUsage {
  const [cpu, memory, io] = [readNodeStall("cpu"), readNodeStall("memory"), readNodeStall("io")];
  return {
    ...usage,
    ...(usage.cpu && { cpu: { ...usage.cpu, ...(cpu && { psi: cpu }) } }),
    ...(usage.memory && { memory: { ...usage.memory, ...(memory && { psi: memory }) } }),
    ...(io && { io: { psi: io } }),
  };
}
