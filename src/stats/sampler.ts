import { type Abortable, manyListeners } from "../lib/abort.ts";
import type { Clock, Instant } from "../lib/clock.ts";
import { orAborted } from "../lib/or-aborted.ts";
import type { PodIdentity } from "../model/step.ts";
import type { CgroupDetails, CgroupUsage, InterfaceUsage, MemoryUsage, MountedFilesystem } from "../model/usage.ts";
import { CpuRates } from "./cpu-rates.ts";
import type { FilesystemSampler } from "./filesystems.ts";
import type { ContainerSample, NodeSample, PodSample, SignalSample, SystemSample, UsageSample } from "./samples.ts";

/** Reads cgroups; `CgroupUsageReader` provides it. */
export interface CgroupSource {
  read(path: string): CgroupUsage;
  /** Usage and details of the same moment: less work than one after the other. */
  readWithDetails(path: string): { readonly usage: CgroupUsage; readonly details: CgroupDetails | undefined };
  memory(path: string): MemoryUsage | undefined;
  childOf(path: string, id: string): string | undefined;
  processIn(path: string): number | undefined;
  createdAt(path: string): number | undefined;
}

/** Usage of sandboxes and containers by id, with the network of sandboxes. */
export type RuntimeUsages = ReadonlyMap<
  string,
  { readonly usage: CgroupUsage; readonly network?: readonly InterfaceUsage[] }
>;

/** Reads the node as a whole. */
export interface NodeSource {
  tasks(): { readonly most: number; readonly running: number } | undefined;
  swap(): NodeSample["swap"];
  interfaces(pid: number | "self"): readonly InterfaceUsage[] | undefined;
  /** Pressure of the node, in addition to what its cgroup has. */
  withPressure(usage: CgroupUsage): CgroupUsage;
  /** The mounted filesystems; one that hangs is missing. */
  filesystems(): Promise<readonly MountedFilesystem[]>;
}

/** A pod to sample, as the runtime has it. */
export interface SampledPod extends PodIdentity {
  /** The cgroup that its containers are right below. */
  readonly cgroup: string;
  /** False if that cgroup is shared with others. */
  readonly isOwnCgroup: boolean;
  readonly sandbox?: {
    readonly id: string;
    readonly createdAt: number;
    readonly hostNetwork: boolean;
    readonly image: string;
  };
  /** Those that run. */
  readonly containers: readonly {
    readonly id: string;
    readonly name: string;
    readonly image: string;
    readonly startedAt: number;
  }[];
}

/** Node and pods of one sample. */
export interface CurrentSample {
  readonly node: NodeSample;
  readonly pods: ReadonlyMap<string, PodSample>;
}

export interface SamplerDeps {
  readonly clock: Clock;
  readonly cgroups: CgroupSource;
  readonly node: NodeSource;
  readonly filesystems: FilesystemSampler;
  pods(): readonly SampledPod[];
  /** Called after each sample. */
  sampled?(node: NodeSample, pods: Iterable<PodSample>): void;
  /** Usage by id of sandbox or container as the runtime measures it; absent: cgroups tell. Never rejects. */
  runtimeUsages?(): Promise<RuntimeUsages | undefined>;
}

export interface SamplerOptions {
  readonly memoryBytes: number;
  readonly bootedAt: number;
  /** The cgroup of all pods. */
  readonly podsCgroup: string;
  /** The cgroups between that and those of pods. */
  readonly classCgroups: readonly string[];
  /** Interval of full samples in milliseconds. */
  intervalMs(): number;
  /** Further cgroups of the system by their names in the summary; those without a path are left out. */
  systemCgroups(): Readonly<Record<string, string>>;
}

/** Details are read for this long after somebody asked for them, in milliseconds. */
const DETAILS_MS = 5 * 60_000;
/** Reading files goes on for this long before others get their turn. */
const SLICE_MS = 8;
/** For readers of the samples there is no new one sooner than this. */
const SOONEST_MS = 1000;
/** Filesystems are not asked more often than this. */
const SPACE_AGE_MS = 1000;

/** Reads usage once an interval into one place, of which the summary, metrics and eviction are views. */
export class Sampler {
  node: NodeSample | undefined;
  pods: ReadonlyMap<string, PodSample> = new Map();
  private readonly rates = new CpuRates();
  /** Cgroups of containers by their ids: looked for once. */
  private paths = new Map<string, string>();
  /** What the runtime measured for this sample. */
  private measured: RuntimeUsages | undefined;
  /** The sample `of` with newer filesystems: one object for all who ask in the same second. */
  private recent: { readonly of: NodeSample; readonly node: NodeSample } | undefined;
  private turn: Promise<unknown> = Promise.resolve();
  private queued: Promise<void> | undefined;
  /** Never aborted: a sample is shared, and a caller that leaves must not end it for the others. */
  private readonly whole = manyListeners();
  /** Monotonic time until which details are read. */
  private detailsUntil = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly deps: SamplerDeps,
    private readonly options: SamplerOptions,
  ) {}

  /** Samples everything, once an interval, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.sample({ signal });
      await this.deps.clock.sleep(this.options.intervalMs(), { signal });
    }
  }

  /** Samples everything; what it resolves to was read after the call. Calls that wait for their turn share one. */
  sample({ signal }: Abortable): Promise<void> {
    this.queued ??= this.enqueue();
    return orAborted(this.queued, signal);
  }

  /** Samples everything if a pod or container runs that the last sample does not have, at most once a second. */
  async refresh({ signal }: Abortable): Promise<void> {
    const age = this.node === undefined ? Infinity : this.deps.clock.now().mono - this.node.usage.at.mono;
    if (age < SOONEST_MS || (this.node !== undefined && !this.isIncomplete())) return;
    await this.sample({ signal });
  }

  /**
   * The last sample, refreshed, for the summary. Its filesystems and tasks are at most a second old: Kubernetes reads them
   * for each request, and clients compute thresholds from them. Undefined before the first sample.
   */
  async current({ signal }: Abortable): Promise<CurrentSample | undefined> {
    await this.refresh({ signal });
    const disks = await this.deps.filesystems.sample({ signal, maxAgeMs: SPACE_AGE_MS });
    const { node, pods } = this;
    if (node === undefined) return undefined;
    if (node.disks === disks) return { node, pods };
    if (this.recent?.of !== node || this.recent.node.disks !== disks) {
      const tasks = this.deps.node.tasks();
      this.recent = { of: node, node: { ...node, disks, ...(tasks && { tasks }) } };
    }
    return { node: this.recent.node, pods };
  }

  private isIncomplete(): boolean {
    return this.deps.pods().some(({ uid, containers }) => {
      const known = new Set(this.pods.get(uid)?.containers.map(({ id }) => id));
      return !this.pods.has(uid) || containers.some(({ id }) => !known.has(id));
    });
  }

  /** Has details read for the next minutes; resolves when the store has them. */
  async withDetails({ signal }: Abortable): Promise<void> {
    const now = this.deps.clock.now().mono;
    const isRead = now < this.detailsUntil && this.node?.usage.details !== undefined;
    this.detailsUntil = now + DETAILS_MS;
    await (isRead ? this.refresh({ signal }) : this.sample({ signal }));
  }

  /**
   * Reads what decides about pressure, and nothing else: cheap enough for several times a second. Filesystems are asked
   * again only if what is known of them is older than `spaceAgeMs`.
   */
  async signals({ signal, spaceAgeMs }: Abortable & { readonly spaceAgeMs: number }): Promise<SignalSample> {
    const { cgroups, clock, node, filesystems } = this.deps;
    const spaces = await filesystems.sample({ signal, maxAgeMs: spaceAgeMs });
    const at = clock.now();
    const memory = cgroups.memory("/");
    const pods = cgroups.memory(this.options.podsCgroup);
    const tasks = node.tasks();
    return {
      at,
      ...(memory && { memory: { capacity: this.options.memoryBytes, workingSet: memory.workingSet } }),
      ...(pods?.limit !== undefined && { podsMemory: { capacity: pods.limit, workingSet: pods.workingSet } }),
      ...(tasks && { tasks }),
      filesystems: spaces,
    };
  }

  private enqueue(): Promise<void> {
    const done = this.turn.then(() => {
      this.queued = undefined;
      return this.sampleNow(this.whole.signal);
    });
    this.turn = done.catch(() => undefined);
    return done;
  }

  private async sampleNow(signal: AbortSignal): Promise<void> {
    const disks = await this.deps.filesystems.sample({ signal, maxAgeMs: SPACE_AGE_MS });
    const filesystems = this.readsDetails ? await this.deps.node.filesystems() : [];
    this.measured = await this.deps.runtimeUsages?.();
    const node = this.sampleNode({ disks, filesystems });
    const pods = new Map<string, PodSample>();
    const paths = new Map<string, string>();
    let began = this.deps.clock.now().mono;
    for (const pod of this.deps.pods()) {
      pods.set(pod.uid, this.samplePod(pod, paths));
      if (this.deps.clock.now().mono - began < SLICE_MS) continue;
      await this.deps.clock.sleep(0, { signal });
      began = this.deps.clock.now().mono;
    }
    // Together: a page shows one sample.
    this.node = node;
    this.pods = pods;
    this.paths = paths;
    this.rates.endRound();
    this.deps.sampled?.(node, pods.values());
  }

  private sampleNode(spaces: Pick<NodeSample, "disks" | "filesystems">): NodeSample {
    const { cgroups, node } = this.deps;
    const { podsCgroup, classCgroups, systemCgroups } = this.options;
    const sampled = ([name, cgroup]: readonly [string, string]): SystemSample[] => {
      const startedAt = cgroup === "" ? undefined : cgroups.createdAt(cgroup);
      return startedAt === undefined ? [] : [{ name, cgroup, startedAt, usage: this.usage(`/${name}`, cgroup) }];
    };
    const named = { pods: podsCgroup, ...systemCgroups() };
    const root = this.usage("/", "/");
    const tasks = node.tasks();
    return {
      bootedAt: this.options.bootedAt,
      ...spaces,
      ...(tasks && { tasks }),
      usage: { ...root, ...node.withPressure(root) },
      swap: node.swap(),
      network: node.interfaces("self") ?? [],
      system: Object.entries(named).flatMap(sampled),
      classes: this.readsDetails ? classCgroups.flatMap((path) => sampled([path, path])) : [],
    };
  }

  private samplePod(pod: SampledPod, paths: Map<string, string>): PodSample {
    const sampled = (one: SampledPod["containers"][number]): ContainerSample[] => {
      const { id, name, image, startedAt } = one;
      const cgroup = this.pathOf(pod.cgroup, id, paths);
      const measured = this.measured?.get(id);
      if (measured !== undefined) {
        return [{ id, name, cgroup: cgroup ?? "", image, startedAt, usage: this.rated(id, measured.usage) }];
      }
      return cgroup === undefined ? [] : [{ id, name, cgroup, image, startedAt, usage: this.usage(id, cgroup) }];
    };
    const containers = pod.containers.flatMap(sampled);
    const network = this.network(pod, paths);
    const { uid, name, namespace, cgroup, isOwnCgroup } = pod;
    const [sandbox] = this.readsDetails && pod.sandbox ? sampled(sandboxOf(pod.sandbox)) : [];
    return {
      uid,
      name,
      namespace,
      startedAt: pod.sandbox?.createdAt ?? 0,
      ...(isOwnCgroup && { cgroup }),
      usage: this.podUsage(pod, containers),
      ...(network && { network }),
      containers,
      ...(sandbox && { sandbox }),
    };
  }

  private podUsage(
    { uid, cgroup, isOwnCgroup, sandbox }: SampledPod,
    containers: readonly ContainerSample[],
  ): UsageSample {
    const measured = this.measured?.get(sandbox?.id ?? "");
    if (measured !== undefined) return this.rated(uid, withSwap(measured.usage, containers));
    return isOwnCgroup ? this.usage(uid, cgroup) : this.rated(uid, sumOf(containers));
  }

  private network({ cgroup, sandbox }: SampledPod, paths: Map<string, string>): readonly InterfaceUsage[] | undefined {
    if (sandbox === undefined || sandbox.hostNetwork) return undefined;
    const measured = this.measured?.get(sandbox.id)?.network;
    if (measured !== undefined) return measured;
    const path = this.pathOf(cgroup, sandbox.id, paths);
    const pid = path === undefined ? undefined : this.deps.cgroups.processIn(path);
    return pid === undefined ? undefined : this.deps.node.interfaces(pid);
  }

  private pathOf(parent: string, id: string, paths: Map<string, string>): string | undefined {
    const path = this.paths.get(id) ?? this.deps.cgroups.childOf(parent, id);
    if (path !== undefined) paths.set(id, path);
    return path;
  }

  private get readsDetails(): boolean {
    return this.deps.clock.now().mono < this.detailsUntil;
  }

  private usage(key: string, path: string): UsageSample {
    const { cgroups } = this.deps;
    if (!this.readsDetails) return this.rated(key, cgroups.read(path));
    const { usage, details } = cgroups.readWithDetails(path);
    return { ...this.rated(key, usage), ...(details && { details }) };
  }

  private rated(key: string, usage: CgroupUsage): UsageSample {
    const at: Instant = this.deps.clock.now();
    const nanoCores = usage.cpu && this.rates.rate(key, usage.cpu.usageNanos, at.mono);
    return { ...usage, at, ...(nanoCores !== undefined && { nanoCores }) };
  }
}

/** A sandbox as a container of its pod: it has no name. */
function sandboxOf({ id, image, createdAt }: NonNullable<SampledPod["sandbox"]>): SampledPod["containers"][number] {
  return { id, name: "", image, startedAt: createdAt };
}

/** Usage of a pod as a runtime measures it, which counts swap for containers only. */
function withSwap(usage: CgroupUsage, containers: readonly ContainerSample[]): CgroupUsage {
  if (usage.memory === undefined) return usage;
  const swap = containers.reduce((sum, one) => sum + (one.usage.memory?.swap ?? 0), 0);
  return { ...usage, memory: { ...usage.memory, swap } };
}

/** Usage of a pod that has no cgroup of its own. */
function sumOf(containers: readonly ContainerSample[]): CgroupUsage {
  const sum = (pick: (usage: UsageSample) => number | undefined): number =>
    containers.reduce((total, { usage }) => total + (pick(usage) ?? 0), 0);
  return {
    cpu: { usageNanos: sum(({ cpu }) => cpu?.usageNanos) },
    memory: {
      usage: sum(({ memory }) => memory?.usage),
      workingSet: sum(({ memory }) => memory?.workingSet),
      rss: sum(({ memory }) => memory?.rss),
      pageFaults: sum(({ memory }) => memory?.pageFaults),
      majorPageFaults: sum(({ memory }) => memory?.majorPageFaults),
      swap: sum(({ memory }) => memory?.swap),
    },
    pids: sum(({ pids }) => pids),
  };
}
