import { CgroupDetailsReader } from "../adapters/cgroup/details.ts";
import { ownCgroup } from "../adapters/cgroup/own-cgroup.ts";
import { CgroupUsageReader } from "../adapters/cgroup/usage.ts";
import type { CgroupMount } from "../adapters/host/cgroups.ts";
import { readHardware } from "../adapters/host/hardware.ts";
import { machineInfo } from "../adapters/host/machine.ts";
import { readMountedFilesystems } from "../adapters/host/mounted-filesystems.ts";
import {
  readBootTime,
  readInterfaces,
  readNodeStall,
  readSwap,
  readTasks,
  SpaceReader,
} from "../adapters/host/node-usage.ts";
import type { ImagePort } from "../adapters/runtime/port.ts";
import type { agentOptions, OptionStore } from "../config/index.ts";
import { type Abortable, manyListeners } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Loop } from "../lib/loop.ts";
import { reportedVersion } from "../lib/version.ts";
import type { Pod } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import type { CgroupUsage } from "../model/usage.ts";
import {
  type CadvisorResult,
  type CadvisorStore,
  type ContainerName,
  cadvisorApi,
  containerNamed,
} from "./cadvisor-api.ts";
import { cadvisorMetrics } from "./cadvisor-metrics.ts";
import { cgroupRows } from "./cgroup-rows.ts";
import { FilesystemSampler } from "./filesystems.ts";
import type { MachineDescription } from "./machine-description.ts";
import { resourceMetrics } from "./resource-metrics.ts";
import { type CgroupSource, type SampledPod, Sampler } from "./sampler.ts";
import { summaryOf } from "./summary.ts";

/** What the sampler and its views are built from. */
export interface StatsDeps {
  readonly clock: Clock;
  readonly host: { cgroupMounts(): readonly CgroupMount[] };
  readonly store: OptionStore<typeof agentOptions>;
  readonly machine: { readonly nodeName: string; readonly memoryBytes: number };
  readonly images: Pick<ImagePort, "imageFilesystems">;
  readonly observer: { list(): readonly ObservedPod[] };
  /** The cgroups of pods. */
  readonly cgroups: { parentOf(pod: Pod): string };
  /** The cgroups above those of pods: that of all pods, and those of QoS classes. */
  readonly classes: { readonly all: string; readonly burstable: string; readonly bestEffort: string };
  /** Measures what pods keep on disk. */
  readonly storage: {
    read(
      pods: readonly Pod[],
      options: Abortable & { maxAgeMs?: number; limitMs?: number },
    ): Promise<ReadonlyMap<string, PodStorage>>;
  };
  podOf(uid: string): Pod | undefined;
}

/** Time limit of measuring storage for a summary; what is not measured by then is missing or older. */
const STORAGE_MS = 1000;

/** The pages that show samples. */
export interface StatsViews {
  summary(options: Abortable & { readonly onlyCpuAndMemory: boolean }): Promise<unknown>;
  resource(options: Abortable): Promise<string>;
  cadvisor(options: Abortable): Promise<Iterable<string>>;
  api(request: { readonly path: string; readonly query: URLSearchParams }, options: Abortable): Promise<CadvisorResult>;
  container(of: ContainerName, options: Abortable): Promise<unknown>;
}

/** The sampler, its loop, and the pages that show its samples. */
export function composeStats(deps: StatsDeps): {
  readonly sampler: Sampler;
  readonly pages: StatsViews;
  readonly loops: readonly Loop[];
} {
  const { clock, store, images } = deps;
  const { memoryBytes } = deps.machine;
  const { rootDir } = store.current;
  const never = manyListeners();
  const bootedAt = readBootTime();
  const spaces = new SpaceReader();
  const filesystems = new FilesystemSampler(
    { clock, space: (path) => spaces.read(path), imageFilesystems: (options) => images.imageFilesystems(options) },
    { rootDir },
  );
  const sampler = new Sampler(
    {
      clock,
      cgroups: cgroupSource(deps.host.cgroupMounts()),
      node: {
        tasks: readTasks,
        swap: readSwap,
        interfaces: readInterfaces,
        withPressure,
        filesystems: () => readMountedFilesystems((path) => filesystems.space(path, never.signal), rootDir),
      },
      filesystems,
      pods: () => sampledPods(deps),
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
  const summary = async ({ signal, onlyCpuAndMemory }: Abortable & { readonly onlyCpuAndMemory: boolean }) => {
    await sampler.refresh({ signal });
    const { node, pods } = sampler;
    if (node === undefined) throw new Error("the node was not sampled yet");
    const base = { nodeName, bootedAt, memoryBytes, node, pods: pods.values(), onlyCpuAndMemory };
    if (onlyCpuAndMemory) return summaryOf(base);
    const storage = await readStorage(deps, [...pods.keys()], signal);
    return summaryOf({ ...base, filesystems: filesystems.latest, tasks: readTasks(), storage });
  };
  const resource = async ({ signal }: Abortable): Promise<string> => {
    await sampler.refresh({ signal });
    return resourceMetrics(sampler.node, [...sampler.pods.values()]);
  };
  const detailed = async ({ signal }: Abortable): Promise<CadvisorStore> => {
    await sampler.withDetails({ signal });
    const { node, pods } = sampler;
    if (node === undefined) throw new Error("the node was not sampled yet");
    return { machine: describeMachine(deps, clock.now().wall), rows: [...cgroupRows(node, pods.values())] };
  };
  const cadvisor = async (options: Abortable): Promise<Iterable<string>> =>
    cadvisorMetrics({ ...(await detailed(options)), now: clock.now().wall });
  const api: StatsViews["api"] = async ({ path, query }, options) => cadvisorApi(await detailed(options), path, query);
  const container = async (of: ContainerName, options: Abortable): Promise<unknown> =>
    containerNamed(await detailed(options), of);
  return {
    sampler,
    pages: { summary, resource, cadvisor, api, container },
    loops: [{ name: "stats", run: (signal) => sampler.run(signal) }],
  };
}

function describeMachine({ store, machine }: StatsDeps, at: number): MachineDescription {
  const { memoryBytes } = machine;
  const swapBytes = readSwap().total;
  return {
    ...machineInfo(),
    ...readHardware(),
    memoryBytes,
    swapBytes,
    at,
    version: reportedVersion(store.current.version),
  };
}

/** Reads usage and details of cgroups. */
function cgroupSource(mounts: readonly CgroupMount[]): CgroupSource {
  const [usage, details] = [new CgroupUsageReader(mounts), new CgroupDetailsReader(mounts)];
  return {
    read: (path) => usage.read(path),
    details: (path) => details.read(path),
    memory: (path) => usage.memory(path),
    childOf: (path, id) => usage.childOf(path, id),
    processIn: (path) => usage.processIn(path),
    createdAt: (path) => usage.createdAt(path),
  };
}

/** A negative period turns the measuring of volumes off. */
async function readStorage(
  { store, storage, podOf }: StatsDeps,
  uids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, PodStorage>> {
  const { volumeStatsAggPeriod } = store.current;
  if (volumeStatsAggPeriod < 0) return new Map();
  const pods = uids.flatMap((uid) => podOf(uid) ?? []);
  return storage.read(pods, { signal, maxAgeMs: volumeStatsAggPeriod, limitMs: STORAGE_MS });
}

/** Those of the configuration, by their names in the summary; the agent's own is known without it. */
function systemCgroups({ store }: StatsDeps): Readonly<Record<string, string>> {
  const { kubeletCgroups, runtimeCgroups, systemCgroups: misc } = store.current;
  return { kubelet: kubeletCgroups || (ownCgroup() ?? ""), runtime: runtimeCgroups, misc };
}

/** The pods of the runtime whose spec is known, with the newest instance of each container if it runs. */
function sampledPods({ observer, podOf, cgroups, store }: StatsDeps): readonly SampledPod[] {
  const isOwnCgroup = store.current.cgroupsPerQOS;
  return observer.list().flatMap(({ uid, name, namespace, sandboxes, containers }): SampledPod[] => {
    const pod = podOf(uid);
    const [sandbox] = sandboxes;
    if (pod === undefined || sandbox?.state !== "ready") return [];
    const newest = new Map(containers.toReversed().map((container) => [container.name, container]));
    const running = [...newest.values()].filter(({ state }) => state === "running");
    return [{ uid, name, namespace, cgroup: cgroups.parentOf(pod), isOwnCgroup, sandbox, containers: running }];
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
