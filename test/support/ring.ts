import { ProbeNetError } from "../../src/adapters/net/probe-error.ts";
import type { ProbeNet } from "../../src/adapters/net/probe-net.ts";
import { EventQueue } from "../../src/adapters/runtime/event-queue.ts";
import { FakeRuntime } from "../../src/adapters/runtime/fake.ts";
import { type FakeProgram } from "../../src/adapters/runtime/fake-program.ts";
import type { RuntimeEvent } from "../../src/adapters/runtime/port.ts";
import { ImagePuller } from "../../src/images/index.ts";
import type { Abortable } from "../../src/lib/abort.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { FakeClock } from "../../src/lib/clock.ts";
import { fixed } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import { Metrics } from "../../src/lib/metrics.ts";
import type { Tracer } from "../../src/lib/tracer.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { HttpRequest } from "../../src/model/http-action.ts";
import { allContainers } from "../../src/model/pod-facts.ts";
import {
  type AdmissionNode,
  AgentView,
  type Allocator,
  type ContainerContributor,
  DEFAULT_CRASH_LIMITS,
  DesiredPods,
  type ExecuteDeps,
  Journal,
  Observer,
  type PodFiles,
  type ResourceHealthProvider,
  UserRanges,
  WorkerPool,
} from "../../src/pods/index.ts";
import { ProbeScheduler, probeHooks } from "../../src/probes/index.ts";
import { LIMITS } from "./limits.ts";

const NODE: AdmissionNode = {
  name: "here",
  labels: {},
  taints: [],
  kernel: "6.1.0",
  hasAppArmor: true,
  hasStrictGroups: true,
  allocatable: { cpu: "2", memory: "16Gi", pods: "110" },
  allowedUnsafeSysctls: [],
};

const ANY_SOURCE = { hostNetworkSources: ["*"], hostPIDSources: ["*"], hostIPCSources: ["*"] };

/** The whole ring on the fake runtime and the fake clock: what a pod's life looks like without a machine. */
export class FakeRing {
  readonly clock = new FakeClock();
  readonly runtime: FakeRuntime;
  readonly files = new MemoryFiles();
  /** What probes reach: nothing, unless a test says what answers. */
  readonly net: ProbeNet = {
    http: () => Promise.reject(new ProbeNetError("Dial", "connection refused")),
    tcp: () => Promise.reject(new ProbeNetError("Dial", "connection refused")),
    grpc: () => Promise.reject(new ProbeNetError("Dial", "connection refused")),
  };
  readonly tornDown: string[] = [];
  /** What making a pod's volumes does; a test may let it wait or fail. */
  prepareVolumes: (pod: Pod, signal: AbortSignal) => Promise<void> = () => Promise.resolve();
  volumesAtHand = true;
  /** Groups that the volumes of every pod need. */
  volumeGroups: readonly number[] = [];
  /** What taking a pod's volumes down does; a test may let it fail. */
  tearDownVolumes = (uid: string): Promise<void> => Promise.resolve(void this.tornDown.push(uid));
  /** What ending the waits for lost servers does. */
  releaseVolumes = (_uid: string): Promise<void> => Promise.resolve();
  /** Requests of lifecycle hooks; a test may answer them otherwise. */
  readonly requests: string[] = [];
  httpGet = (request: HttpRequest, _options: Abortable): Promise<{ status: number }> => {
    this.requests.push(`${request.scheme}://${request.host}:${request.port}${request.target}`);
    return Promise.resolve({ status: 200 });
  };
  /** What each container uses, in bytes. */
  memoryUsage: number | undefined;
  /** What setting a pod's limits does; a test may let it wait or fail. */
  ensureCgroup: (pod: Pod) => Promise<void> = () => Promise.resolve();
  /** Whether pods find their cgroup. */
  hasCgroup = true;
  /** The node that pods have to fit on; a test may change it. */
  node: AdmissionNode = NODE;
  /** The only source of pods, of the next agent: `file` or `api`. */
  source = "file";
  /** The boot of the machine, of the next agent. */
  bootId = "boot";
  /** Makes the allocators of the next agent. */
  allocators: () => readonly Allocator[] = () => [];
  /** What was counted, for metrics. */
  readonly counted: string[] = [];
  /** Why no pod can be resized in place. */
  resizeProblem: string | undefined;
  /** What the node's capabilities add to containers, from the next agent on. */
  contributors: readonly ContainerContributor[] = [];
  /** What prepares claims, and reports the health of devices, from the next agent on. */
  claims: (NonNullable<ExecuteDeps["claims"]> & Partial<ResourceHealthProvider>) | undefined;
  /** What of the host pods may have. */
  security: ReturnType<NonNullable<ExecuteDeps["node"]["security"]>> | undefined;
  journal!: Journal;
  pool!: WorkerPool;
  view!: AgentView;
  private desired!: DesiredPods;
  /** What the next agent traces with. */
  tracer: Tracer | undefined;
  private stop = manyListeners();

  constructor(
    programs: Readonly<Record<string, FakeProgram>> = {},
    private readonly disturbance?: { events(event: RuntimeEvent): readonly number[] },
  ) {
    this.runtime = new FakeRuntime({ clock: this.clock });
    for (const [name, program] of Object.entries(programs)) this.runtime.program(name, program);
    this.startAgent();
  }

  /** Tells the ring that exactly these pods are wanted, and lets everything happen that needs no time. */
  async want(...pods: readonly Pod[]): Promise<void> {
    for (const pod of pods) for (const { image } of allContainers(pod)) this.runtime.image(image ?? "");
    await this.wantAsIs(...pods);
  }

  /** Like `want`, but images exist only if the test said so. */
  async wantAsIs(...pods: readonly Pod[]): Promise<void> {
    // As on a real machine the runtime was listed before the first manifest is read.
    await this.clock.advance(0);
    this.publish(...pods);
    await this.clock.advance(0);
  }

  /** A snapshot without giving the ring any time. */
  publish(...pods: readonly (Pod | { isIncomplete: boolean })[]): void {
    const isIncomplete = pods.some((pod) => "isIncomplete" in pod);
    const wanted = pods.filter((pod) => "spec" in pod).map((pod) => ({ pod, warnings: [] }));
    this.pool.apply(this.desired.apply({ source: this.source, pods: wanted, isIncomplete }));
  }

  /** Ends the agent as SIGKILL does (nothing is put in order), and starts another on the same runtime. */
  async restartAgent(options: { isListed?: boolean } = {}): Promise<void> {
    this.stop.abort();
    await this.clock.advance(0);
    this.startAgent();
    if (options.isListed !== false) await this.clock.advance(0);
  }

  /** Ends the agent for good. */
  stopAgent(): void {
    this.stop.abort();
  }

  status(name = "web"): ReturnType<WorkerPool["status"]> {
    return this.pool.status(`uid-of-${name}`);
  }

  /** Ids of containers in the runtime, in the order of their creation. */
  async containers(): Promise<readonly { id: string; name: string; state: string; attempt: number }[]> {
    const list = await this.runtime.listContainers({}, { signal: new AbortController().signal });
    return list.map(({ id, name, state, attempt }) => ({ id, name, state, attempt }));
  }

  private startAgent(): void {
    const { clock, runtime, files } = this;
    this.stop = manyListeners();
    const { signal } = this.stop;
    const late = signal;
    this.journal = new Journal({ clock, tracer: this.tracer });
    this.desired = new DesiredPods({ clock }, { sources: [this.source] });
    const observer = new Observer(
      { runtime: this.disturbed(), clock, log: silent },
      {
        wake: (uid) => this.pool.wake(uid),
        listed: (pods) => this.pool.listed(pods),
        missed: () => undefined,
        endMessage: (container) => Promise.resolve(container.message),
      },
      fixed(300_000),
    );
    const options = fixed({ parallel: 1, qps: 0, burst: 0 });
    const allocators = this.allocators();
    const execute: ExecuteDeps = {
      contributors: this.contributors,
      claims: this.claims,
      resourceHealth: [{ healthOf: (...of) => this.claims?.healthOf?.(...of) ?? [] }],
      runtime: observer.recording(runtime),
      files,
      clock,
      log: silent,
      images: new ImagePuller({ images: runtime, clock }, options, signal),
      volumes: {
        prepare: (pod, { signal }) => this.prepareVolumes(pod, signal),
        isAtHand: () => Promise.resolve(this.volumesAtHand),
        source: (_pod, volume) => ({ kind: "path", path: `/volumes/${volume}`, readonly: false }),
        groups: () => this.volumeGroups,
        subPath: (_pod, { volume, subPath }) => Promise.resolve(`/volumes/${volume}/${subPath}`),
        release: (uid) => this.releaseVolumes(uid),
        teardown: (uid) => this.tearDownVolumes(uid),
      },
      objects: { get: () => Promise.resolve(undefined), onChange: () => undefined },
      users: new UserRanges(files, { rootDir: "/root", idsPerPod: () => 65_536 }),
      cgroups: {
        parentOf: () => "/kubepods/pod",
        ensure: (pod) => this.ensureCgroup(pod),
        exists: () => this.hasCgroup,
        refresh: () => Promise.resolve(),
        read: () => undefined,
        memoryUsage: () => this.memoryUsage,
        uids: () => [],
        remove: () => Promise.resolve(),
      },
      node: {
        paths: { rootDir: "/root", podLogsDir: "/logs", containerLogsDir: "/links" },
        hostIps: ["192.0.2.1"],
        limits: () => ({ ...LIMITS, memoryCapacity: 2 ** 34 }),
        allocatable: () => this.node.allocatable,
        runtimeName: "fake",
        bootId: this.bootId,
        security: () => this.security ?? { allowPrivileged: true, ...ANY_SOURCE },
        extraMaskedPaths: [],
        seccompDefault: false,
        hasRecursiveReadOnly: () => false,
        dns: () => ({ resolvConf: "", clusterDns: [], clusterDomain: "", hostIps: ["192.0.2.1"] }),
        hostsFile: () => "",
      },
      httpGet: (request, options) => this.httpGet(request, options),
    };
    const { journal } = this;
    const probes = new ProbeScheduler(
      {
        runtime,
        net: this.net,
        clock,
        log: silent,
        hooks: probeHooks({
          journal,
          metrics: new Metrics(),
          changed: ({ pod, kind }) => this.pool.probed(pod.uid, kind),
        }),
        files: {
          load: (uid) => files.entries.get(`/root/pods/${uid}/probes.json`) ?? "",
          save: (uid, text) => files.writeFile(`/root/pods/${uid}/probes.json`, text),
        },
      },
      { upstreamTiming: false, hostIp: "192.0.2.1", random: () => 0.5 },
      signal,
    );
    this.pool = new WorkerPool(
      {
        execute,
        observer,
        desired: this.desired,
        probes,
        journal,
        clock,
        log: silent,
        late,
        allocators,
        resizeProblem: () => this.resizeProblem,
        counted: {
          orphaned: () => void this.counted.push("orphaned"),
          restarted: ({ metadata }) => void this.counted.push(`restarted ${metadata.name}`),
          preempted: (reason) => void this.counted.push(`preempted ${reason}`),
        },
      },
      {
        maxConcurrentStarts: fixed(8),
        node: () => this.node,
        crashLimits: DEFAULT_CRASH_LIMITS,
        ownsOrphan: () => true,
      },
      signal,
    );
    this.view = new AgentView({ desired: this.desired, pool: this.pool, journal: this.journal, observer });
    observer.run(signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  /** The runtime with events that are lost, doubled or late, as the disturbance says. */
  private disturbed(): FakeRuntime {
    const { disturbance, clock, runtime } = this;
    if (disturbance === undefined) return runtime;
    const events = ({ signal }: { signal: AbortSignal }): AsyncIterable<RuntimeEvent> => {
      const queue = new EventQueue();
      const pump = async (): Promise<void> => {
        for await (const event of runtime.events({ signal })) {
          const delays = event.kind === "resync" ? [0] : disturbance.events(event);
          for (const ms of delays) {
            if (ms === 0) queue.push(event);
            else clock.after(ms, () => queue.push(event));
          }
        }
      };
      pump().catch(() => undefined);
      return queue.read(signal);
    };
    return Object.create(runtime, { events: { value: events } }) as FakeRuntime; // reason: it is one, with other events
  }
}

/** Files that exist only by name. */
export class MemoryFiles implements PodFiles {
  readonly entries = new Map<string, string>();

  makeDir(): Promise<void> {
    return Promise.resolve();
  }

  writeFile(path: string, text: string): Promise<void> {
    this.entries.set(path, text);
    return Promise.resolve();
  }

  replaceFile(path: string, text: string): Promise<void> {
    return this.writeFile(path, text);
  }

  readTail(path: string, bytes: number): Promise<string> {
    return Promise.resolve((this.entries.get(path) ?? "").slice(-bytes));
  }

  readInside(root: string, path: string): Promise<string | undefined> {
    return Promise.resolve(this.entries.get(`${root}/${path}`));
  }

  list(path: string): Promise<readonly string[]> {
    const below = [...this.entries.keys()].filter((entry) => entry.startsWith(`${path}/`));
    const names = below.map((entry) => entry.slice(path.length + 1).split("/", 1)[0] ?? "");
    return Promise.resolve([...new Set(names)]);
  }

  symlink(target: string, path: string): Promise<void> {
    this.entries.set(path, `-> ${target}`);
    // The runtime writes the log that the link points to.
    this.entries.set(target, "");
    return Promise.resolve();
  }

  readLink(path: string): Promise<string | undefined> {
    const text = this.entries.get(path);
    return Promise.resolve(text?.startsWith("-> ") === true ? text.slice(3) : undefined);
  }

  removeFile(path: string): Promise<void> {
    this.entries.delete(path);
    return Promise.resolve();
  }

  removeTree(path: string): Promise<void> {
    for (const entry of [...this.entries.keys()]) if (entry.startsWith(`${path}/`)) this.entries.delete(entry);
    return Promise.resolve();
  }
}
