import { agentOptions, OptionStore, parseAgentOptions } from "../../src/config/index.ts";
import { FakeClock } from "../../src/lib/clock.ts";
import { messageOf } from "../../src/lib/errors.ts";
import { silent } from "../../src/lib/log.ts";
import { Metrics } from "../../src/lib/metrics.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { MachineTopology } from "../../src/model/machine-topology.ts";
import type { ObservedPod } from "../../src/model/observed.ts";
import type { Rejection } from "../../src/model/rejection.ts";
import { composeTopology, type Topology, type TopologyParts } from "../../src/topology/index.ts";

const { signal } = new AbortController();
const MI = 2 ** 20;

/** A machine whose agents come and go; its state files stay. */
export class TopologyNode {
  readonly files = new Map<string, string>();
  readonly clock = new FakeClock();
  metrics = new Metrics();
  topology: Topology;
  /** Pods that the runtime has, and CPU sets that were updated. */
  readonly observed: ObservedPod[] = [];
  readonly desired = new Map<string, Pod>();
  /** UIDs of pods that have a worker. */
  workers: readonly string[] = [];
  readonly updates: string[] = [];
  readonly warnings: string[] = [];
  /** Rejects writes while set. */
  fault: Error | undefined;
  private readonly values: ReturnType<typeof valuesOf>;

  /** False while a manifest cannot be read; at the next start. */
  isComplete = true;
  listedAt: number | undefined = 0;
  /** What sources want, instead of `desired`. */
  wanted: TopologyParts["desired"] | undefined;

  constructor(
    readonly machine: MachineTopology,
    private readonly flags: readonly string[],
    private readonly reserved: { readonly cpus?: number; readonly memoryMi?: number; readonly hugeMi?: number } = {},
  ) {
    this.values = valuesOf(flags);
    this.topology = this.start();
  }

  /** Starts an agent on what the last one persisted. */
  start(flags: readonly string[] = this.flags): Topology {
    const { machine, files, clock } = this;
    this.metrics = new Metrics();
    const values = flags === this.flags ? this.values : valuesOf(flags);
    this.topology = composeTopology({
      clock,
      log: { ...silent, warn: (message) => this.warnings.push(message) },
      metrics: this.metrics,
      machine,
      files: {
        read: (path) => files.get(path),
        replace: (path, text) => {
          if (this.fault !== undefined) return Promise.reject(this.fault);
          files.set(path, text);
          return Promise.resolve();
        },
      },
      store: new OptionStore(agentOptions, values),
      runtime: {
        updateContainerResources: (id, { cpusetCpus }) => {
          this.updates.push(`${id} ${cpusetCpus}`);
          return Promise.resolve();
        },
      },
      resources: () => this.resources(),
      observer: { list: () => this.observed, get: (uid) => this.observed.find((pod) => pod.uid === uid) },
      listedAt: () => this.listedAt,
      pool: () => ({ worker: (uid) => (this.workers.includes(uid) ? {} : undefined) }),
      desired: this.wanted ?? {
        isComplete: this.isComplete,
        get: (uid) => {
          const pod = this.desired.get(uid);
          return pod && { pod };
        },
      },
    });
    return this.topology;
  }

  /** Admits a pod as the agent does: what it has is released again if it is rejected. */
  async admit(pod: Pod): Promise<Rejection | undefined> {
    const rejection = await this.allocate(pod);
    if (rejection !== undefined) this.remove(pod.metadata.uid ?? "");
    return rejection;
  }

  remove(uid: string): void {
    for (const allocator of this.topology.allocators) allocator.release(uid);
  }

  private async allocate(pod: Pod): Promise<Rejection | undefined> {
    try {
      for (const allocator of this.topology.allocators) {
        const answer = await allocator.allocate(pod, { signal });
        if (answer !== undefined) return answer.rejection;
      }
      return undefined;
    } catch (error) {
      const message = `Allocate failed due to ${messageOf(error)}, which is unexpected`;
      return { reason: "UnexpectedAdmissionError", message };
    }
  }

  private resources() {
    const { cpus = 0, memoryMi = 0, hugeMi = 0 } = this.reserved;
    const { nodes } = this.machine;
    const memory = nodes.reduce((sum, node) => sum + node.memoryBytes, 0) / MI;
    const huge = new Map<string, number>();
    for (const { pageBytes, pages } of nodes.flatMap(({ hugePages }) => hugePages)) {
      const name = `hugepages-${pageBytes / MI}Mi`;
      huge.set(name, (huge.get(name) ?? 0) + (pages * pageBytes) / MI);
    }
    const pages = (less = 0) => Object.fromEntries([...huge].map(([name, amount]) => [name, `${amount - less}Mi`]));
    const left = memory - memoryMi - [...huge.values()].reduce((a, b) => a + b, 0);
    const count = this.machine.cpus.length;
    return {
      capacity: { cpu: String(count), memory: `${memory}Mi`, ...pages() },
      allocatable: { cpu: String(count - cpus), memory: `${left}Mi`, ...pages(hugeMi) },
    };
  }
}

function valuesOf(flags: readonly string[]) {
  return parseAgentOptions(["--root-dir=/root", "--feature-gates=CPUManagerPolicyAlphaOptions=true", ...flags]).values;
}
