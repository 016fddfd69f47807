import { agentOptions, parseOptions } from "../../src/config/index.ts";
import { composePage, type Page, type PageParts } from "../../src/dashboard/index.ts";
import { type Clock, SystemClock } from "../../src/lib/clock.ts";
import { CodedError } from "../../src/lib/errors.ts";
import { Listeners } from "../../src/lib/listeners.ts";
import { silent } from "../../src/lib/log.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { NodeUsageReport, PodUsageHistory, UsageHistoryReport } from "../../src/model/node-usage.ts";
import type { ContainerDetails } from "../../src/model/page-lines.ts";
import type { ProbeReport } from "../../src/model/probe.ts";
import type { PodEvent, PodExplanation, PodStep, PodSummary } from "../../src/model/step.ts";
import { fakeImages, fakePressure, fakeTopology } from "./fake-machine.ts";

const MEBI = 2 ** 20;

/** A page over made-up pods that are busy in various ways; `step` makes the next sample and some changes. */
export class FakePage {
  readonly page: Page;
  /** How often somebody asked for usage. */
  sampled = 0;
  private readonly changes = new Listeners<string>();
  private readonly pods = new Map<string, PodExplanation>();
  private readonly recorded: PodEvent[] = [];
  private sequence = 0;
  private round = 0;

  constructor(
    { pods, clock = new SystemClock(), parts = {} }: { pods: number; clock?: Clock; parts?: Partial<PageParts> },
    argv: readonly string[] = [],
  ) {
    const now = clock.now().wall;
    for (let index = 0; index < pods; index++) this.set(madeUp(index, now));
    const { values } = parseOptions(argv, agentOptions);
    this.page = composePage(
      {
        clock,
        log: silent,
        view: {
          summaries: () => [...this.pods.values()],
          summary: (uid) => this.pods.get(uid),
          explain: (uid) => this.pods.get(uid),
          events: (since) => this.recorded.filter(({ sequence }) => sequence > since),
          onChange: (fn, options) => this.changes.add(fn, options),
          logPath: (uid, { previous }) => (previous ? undefined : `/logs/${uid}`),
        },
        logs: { read: () => shortLog() },
        streams: {
          exec: () => Promise.reject(new CodedError("NotFound", "there is no runtime")),
          podOf: (uid) => (this.pods.has(uid) ? probedPod(uid) : undefined),
        },
        probes: (uid) => madeUpProbes(uid, clock.now().wall),
        topology: fakeTopology,
        usage: async () => this.usage(clock.now().wall),
        history: {
          report: () => this.history(clock.now().wall),
          ofPod: (uid) => (this.pods.has(uid) ? podHistory(clock.now().wall) : undefined),
        },
        details: () => [this.counters()],
        images: async () => fakeImages(),
        node: async () => fakePressure(),
        store: { current: values },
        ...parts,
      },
      { nodeName: "n1", version: "v0" },
    );
  }

  /** Adds or changes a pod. */
  set(pod: PodExplanation): void {
    this.pods.set(pod.uid, pod);
    this.changes.call(pod.uid);
  }

  remove(uid: string): void {
    this.pods.delete(uid);
    this.changes.call(uid);
  }

  get(uid: string): PodExplanation | undefined {
    return this.pods.get(uid);
  }

  event(pod: PodSummary, more: Partial<PodEvent>): void {
    const { uid, name, namespace } = pod;
    const event = {
      type: "Normal",
      reason: "Started",
      message: "Container started",
      count: 1,
      first: 0,
      last: 0,
    } as const;
    this.recorded.push({ ...event, ...more, pod: { uid, name, namespace }, sequence: ++this.sequence });
    this.changes.call(uid);
  }

  /** True if somebody follows the pods. */
  get isWatched(): boolean {
    return !this.changes.isEmpty;
  }

  private counters(): ContainerDetails {
    const readBytes = this.round * 30_000;
    const open = { processes: 3, descriptors: 24, sockets: 7 };
    const cpu = { cpuLimitCores: 0.5, throttledNanos: 8.2e9 };
    return { name: "main", readBytes, writtenBytes: readBytes * 2, ...open, ...cpu, oomKills: 1 };
  }

  /** Ten minutes of the node, and what is kept of the pods. */
  private history(now: number): UsageHistoryReport {
    const node = Array.from({ length: 60 }, (_, index) => this.measure(now - (60 - index) * 10_000).node);
    const bars = [...this.pods.keys()].map((uid, pod) => [uid, waves(40, (index) => 2e7 + 2e7 * wave(index + pod))]);
    return { node, pods: Object.fromEntries(bars) as Record<string, number[]> };
  }

  private usage(at: number): NodeUsageReport {
    this.sampled++;
    return this.measure(at);
  }

  private measure(at: number): NodeUsageReport {
    this.round++;
    const wave = (index: number): number => (Math.sin((this.round + index * 7) / 5) + 1) / 2;
    const pods = [...this.pods.values()].map((pod, index) => {
      const usage = {
        at,
        nanoCores: Math.round(wave(index) * 4e7),
        workingSetBytes: Math.round((20 + (index % 9) * 8 + wave(index) * 6) * MEBI),
        tasks: 2 + (index % 5),
        ...(index % 3 === 0 && { memoryLimitBytes: 128 * MEBI }),
      };
      const network = { rxBytes: this.round * 4000 * (index % 7), txBytes: this.round * 1000 * (index % 5) };
      return {
        ...usage,
        uid: pod.uid,
        name: pod.name,
        namespace: pod.namespace,
        network,
        containers: [{ ...usage, name: "main" }],
      };
    });
    const cpu = pods.reduce((sum, { nanoCores }) => sum + nanoCores, 0);
    const node = {
      at,
      nanoCores: Math.min(3.9e9, cpu + 2e8),
      workingSetBytes: pods.reduce((sum, { workingSetBytes }) => sum + workingSetBytes, 900 * MEBI),
      tasks: 412,
      network: { rxBytes: this.round * 90_000 * (1 + wave(3)), txBytes: this.round * 30_000 },
      swap: { totalBytes: 0, freeBytes: 0 },
      disk: { capacityBytes: 250 * 1024 * MEBI, availableBytes: 61 * 1024 * MEBI },
      diskTraffic: { readBytes: this.round * 20_000, writtenBytes: this.round * 60_000 * (1 + wave(5)) },
      pressure: { cpu: wave(1) * 8, memory: 0, io: wave(9) * 3 },
    };
    return { node, cores: 4, memoryBytes: 64 * 1024 * MEBI, pods };
  }
}

/** The log of every container. */
export async function* shortLog(): AsyncGenerator<Uint8Array> {
  for (let line = 0; line < 200; line++) yield Buffer.from(`line ${line} of the log\n`);
}

function wave(at: number): number {
  return Math.sin(at / 4);
}

function waves(length: number, value: (index: number) => number): number[] {
  return Array.from({ length }, (_, index) => Math.round(value(index)));
}

function podHistory(now: number): PodUsageHistory {
  const main = {
    nanoCores: waves(40, (index) => 2e7 + 1.5e7 * wave(index)),
    workingSetBytes: waves(40, (index) => (60 + 8 * wave(index / 2)) * MEBI),
  };
  return { at: waves(40, (index) => now - (40 - index) * 10_000), containers: { main } };
}

/** One of the made-up pods. */
function madeUp(index: number, now: number): PodExplanation {
  const begun = now - 3_600_000 - index * 61_000;
  const step = (name: PodStep["step"], since: number, took: number): PodStep => {
    return { step: name, since: begun + since, until: begun + since + took, outcome: "ok", detail: "" };
  };
  const isBad = index % 83 === 7;
  return {
    uid: `uid-${index}`,
    name: `${["web", "api", "worker", "cache", "queue"][index % 5]}-${index}`,
    namespace: ["default", "shop", "kube-system"][index % 3] ?? "default",
    source: "api",
    state: isBad ? "CrashLoopBackOff" : "Running",
    phase: "Running",
    readyContainers: isBad ? 0 : 1,
    totalContainers: 1,
    restarts: isBad ? 12 : 0,
    ip: `10.88.${index >> 8}.${index & 255}`,
    seenAt: begun,
    startedAt: begun,
    containers: [
      {
        name: "main",
        kind: "regular",
        image: "registry.example/shop/app:1.4",
        id: `containerd://${index}`,
        state: "running",
        reason: "",
        message: "",
        ready: !isBad,
        restarts: 0,
        since: begun,
      },
    ],
    steps: [step("admitted", 0, 1), step("sandbox", 1, 280), step("create", 290, 20), step("start", 310, 90)],
    errors: [],
    events: [],
    warnings: [],
  };
}

function probedPod(uid: string): Pod {
  const main = {
    name: "main",
    startupProbe: { tcpSocket: { port: 8080 }, periodSeconds: 2 },
    livenessProbe: { httpGet: { port: 8080, path: "/healthz" } },
    readinessProbe: { exec: { command: ["/bin/ready", "--all"] }, periodSeconds: 5 },
  };
  return { metadata: { uid, name: uid, namespace: "default" }, spec: { containers: [main] } };
}

/** A readiness probe that fails, and others that do not. */
export function madeUpProbes(uid: string, now: number): readonly ProbeReport[] {
  const isBad = Number(uid.slice(4)) % 83 === 7;
  const ran = { outcome: "success", at: now - 1400, tookMs: 3, message: "" } as const;
  const failed = {
    outcome: "failure",
    at: now - 900,
    tookMs: 41,
    message: "command exited with 1: no database",
  } as const;
  return [
    { container: "main", kind: "startup", result: "success", last: { ...ran, at: now - 3_500_000 } },
    {
      container: "main",
      kind: "liveness",
      result: "success",
      last: ran,
      streak: { of: "success", count: 361 },
      nextAt: now + 8600,
    },
    isBad
      ? { container: "main", kind: "readiness", result: "failure", last: failed, streak: { of: "failure", count: 14 } }
      : { container: "main", kind: "readiness", result: "success", last: ran, streak: { of: "success", count: 720 } },
  ];
}
