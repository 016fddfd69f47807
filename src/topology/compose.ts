import { readMachineTopology } from "../adapters/host/machine-topology.ts";
import type { RuntimePort } from "../adapters/runtime/port.ts";
import { type agentOptions, ConfigurationError, cpusIn, isGateOn, type OptionStore } from "../config/index.ts";
import type { Clock } from "../lib/clock.ts";
import { select } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { Wakes } from "../lib/wakes.ts";
import type { AssignedCompute } from "../model/assigned-resources.ts";
import { formatCpuSet } from "../model/cpu-set.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { MachineTopology } from "../model/machine-topology.ts";
import type { ObservedPod } from "../model/observed.ts";
import type { HintProvider } from "../model/topology.ts";
import type { DeviceReport, TopologyReport } from "../model/topology-report.ts";
import { assignedCompute } from "./assigned.ts";
import { type CpuPart, composeCpus } from "./cpu/compose-cpus.ts";
import { CpuSets, type RunningContainer } from "./cpu-sets.ts";
import { Demand } from "./demand.ts";
import { hasExclusiveCpus } from "./exclusive-cpus.ts";
import { composeMemory, type MemoryPart } from "./memory/compose-memory.ts";
import { MOST_NODES, type TopologyPolicy } from "./merge-hints.ts";
import { topologyMetrics } from "./metrics.ts";
import { allocationMetrics } from "./pinning-metrics.ts";
import { topologyReport } from "./report.ts";
import { resizeProblem } from "./resize-problem.ts";
import type { StateFiles } from "./state-writer.ts";
import { TopologyAllocator, type TopologyRules } from "./topology-allocator.ts";
import { withoutCompleted } from "./without-completed.ts";

/** What allocation by topology is built from. */
export interface TopologyParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly files: StateFiles;
  readonly store: OptionStore<typeof agentOptions>;
  readonly runtime: Pick<RuntimePort, "updateContainerResources">;
  /** Capacity and allocatable of the node: what lies between them is reserved. */
  resources(): Readonly<Record<"capacity" | "allocatable", Readonly<Record<string, string>>>>;
  readonly observer: { list(): readonly ObservedPod[]; get(uid: string): ObservedPod | undefined };
  readonly desired: { readonly isComplete: boolean; get(uid: string): { readonly pod: Pod } | undefined };
  /** Workers of pods, those of orphaned pods included. Called once all is built. */
  pool(): { worker(uid: string): unknown };
  /** When the runtime was listed last; undefined before the first list. */
  listedAt(): unknown;
  /** Resources of other features that are aligned with CPUs and memory; asked before those, as in Kubernetes. */
  readonly providers?: readonly HintProvider[];
  /** The devices of plug-ins, for the report. */
  readonly devices?: (nameOf: (uid: string) => { namespace: string; pod: string }) => readonly DeviceReport[];
  /** Of the machine, except in tests. */
  readonly machine?: MachineTopology;
}

/** Who has which CPUs and which memory, and what is allocated at admission. */
export interface Topology {
  readonly machine: MachineTopology;
  readonly cpus: CpuPart;
  readonly memory: MemoryPart;
  /** Empty if there is nothing to allocate. */
  readonly allocators: readonly TopologyAllocator[];
  readonly contributors: readonly CpusetContributor[];
  readonly loops: readonly Loop[];
  /** True if the container (one of the pod's if missing) has CPUs of its own, and no CPU quota is needed. */
  hasExclusiveCpus(pod: Pod, container?: Container): boolean;
  /** Why the pod cannot be resized in place; undefined if it can. */
  resizeProblem(desired: Pod, allocated: Pod): string | undefined;
  report(): TopologyReport;
  /** For the pod resources API. */
  readonly assigned: AssignedCompute;
}

/** Adds CPU sets to containers. */
export interface CpusetContributor {
  readonly name: string;
  contribute(creation: { readonly pod: Pod; readonly container: Container }): {
    readonly resources: { readonly cpusetCpus?: string; readonly cpusetMems?: string };
  };
}

/**
 * Builds the CPU, memory and topology policies, which continue what an earlier agent or the original kubelet persisted.
 * Throws a ConfigurationError, in Kubernetes' words, for a configuration or a state that this machine cannot have.
 */
export function composeTopology(parts: TopologyParts): Topology {
  const { store, clock, log, metrics, desired, observer } = parts;
  const options = store.current;
  const machine = parts.machine ?? readMachineTopology();
  const counted = topologyMetrics(metrics);
  const reserved = cpusIn(options.reservedSystemCPUs);
  const wakes = new Wakes(clock);
  const managesPodLevel = isGateOn("PodLevelResourceManagers", options.featureGates);
  const demand = new Demand({ managesPodLevel });
  const allocations = allocationMetrics(metrics, { managesPodLevel });
  const shared = { ...parts, options, machine, demand, managesPodLevel };
  const cpus = composeCpus({
    ...shared,
    allocations: allocations("cpu"),
    reserved,
    topology: counted,
    changed: () => wakes.wake(),
  });
  const memory = composeMemory({ ...shared, allocations: allocations("memory") });
  const providers = [...(parts.providers ?? []), ...cpus.providers, ...memory.providers];
  const rules = { ...rulesOf(options, machine), isPodLevel: (pod: Pod) => demand.isPodLevel(pod) };
  const scopes = rules.merge === undefined ? [] : (["container", "pod"] as const);
  for (const scope of scopes) counted.declareAligned(scope, "numa_node");
  const hasWorker = (uid: string): boolean => parts.pool().worker(uid) !== undefined;
  // On a shared runtime others have pods, too. An orphaned pod has a worker before it is read, until it has stopped.
  const isOwn = (uid: string): boolean => desired.get(uid) !== undefined || hasWorker(uid);
  const isKnown = (uid: string): boolean => isOwn(uid) || observer.get(uid) !== undefined;
  const held = (): readonly string[] => [...cpus.state.holders(), ...memory.state.holders()];
  const sets = new CpuSets(
    {
      state: cpus.state,
      wakes,
      log,
      running: () => runningIn(observer.list(), isOwn),
      releaseStale: () => {
        // A pod whose manifest cannot be read just now, or that was not listed yet, has its CPUs still.
        if (!desired.isComplete || parts.listedAt() === undefined) return;
        for (const uid of held().filter((each) => !isKnown(each))) {
          for (const provider of [...cpus.providers, ...memory.providers]) provider.release(uid);
        }
      },
      updateCpus: (id, cpusetCpus, abortable) => parts.runtime.updateContainerResources(id, { cpusetCpus }, abortable),
    },
    select(store.live("cpuManagerReconcilePeriod"), (o) => o.cpuManagerReconcilePeriod),
  );
  const remaining = (pod: Pod): Pod => withoutCompleted(pod, observer.get(pod.metadata.uid ?? ""));
  const isUnthrottled = isGateOn("DisableCPUQuotaWithExclusiveCPUs", options.featureGates);
  const nameOf = podNames(parts);
  const isNeeded = cpus.providers.length + memory.providers.length > 0;
  return {
    machine,
    cpus,
    memory,
    allocators: providers.length === 0 ? [] : [new TopologyAllocator({ providers, clock, counted, remaining }, rules)],
    contributors: isNeeded ? [cpusetContributor(cpus, memory)] : [],
    loops: isNeeded ? [{ name: "CPU sets", run: (stop) => sets.run(stop) }] : [],
    hasExclusiveCpus: (pod, container) =>
      isUnthrottled && hasExclusiveCpus({ state: cpus.state, demand }, pod, container),
    resizeProblem: (asked, allocated) => resizeProblem(options, asked, allocated),
    assigned: assignedCompute(cpus, memory),
    report: () =>
      topologyReport(
        { machine, cpus, memory, rules, podOf: nameOf, devices: () => parts.devices?.(nameOf) ?? [] },
        options,
      ),
  };
}

function cpusetContributor(cpus: CpuPart, memory: MemoryPart): CpusetContributor {
  return {
    name: "CPU sets",
    contribute: ({ pod, container }) => {
      const uid = pod.metadata.uid ?? "";
      const set = formatCpuSet(cpus.state.exclusive(uid, container.name) ?? cpus.state.shared);
      // What an init container of a whole pod had is released once it has completed, but it may run once more.
      const blocks = memory.state.blocks(uid, container.name) ?? memory.state.podEntries.get(uid) ?? [];
      const nodes = blocks.flatMap((block) => block.nodes);
      const mems = [...new Set(nodes)].sort((a, b) => a - b).join(",");
      memory.created(pod, container);
      return { resources: { ...(set !== "" && { cpusetCpus: set }), ...(mems !== "" && { cpusetMems: mems }) } };
    },
  };
}

/** The rules of the topology policy. Throws a ConfigurationError for more NUMA nodes than it can have. */
function rulesOf(options: OptionStore<typeof agentOptions>["current"], { nodes }: MachineTopology): TopologyRules {
  const { topologyManagerPolicy: policy, topologyManagerPolicyOptions: given } = options;
  const scope = options.topologyManagerScope === "pod" ? "pod" : "container";
  if (policy === "none") return { scope };
  const most = Math.min(MOST_NODES, Number(given["max-allowable-numa-nodes"] ?? 8));
  if (nodes.length > most) {
    const why = `unsupported on machines with more than ${most} NUMA Nodes`;
    const fix = "set max-allowable-numa-nodes in topologyManagerPolicyOptions";
    const advice = nodes.length > MOST_NODES ? "" : `; this one has ${nodes.length}: ${fix}`;
    throw new ConfigurationError("Impossible", `topologyManagerPolicy ${policy}: ${why}${advice}`);
  }
  const isClosest = /^(1|t|true)$/i.test(given["prefer-closest-numa-nodes"] ?? "");
  const distances = isClosest ? nodes.map((node) => node.distances) : undefined;
  if (distances?.some(({ length }) => length !== nodes.length)) {
    throw new ConfigurationError(
      "Impossible",
      "cannot discover NUMA topology: error getting NUMA distances from the kernel",
    );
  }
  const merged = policy as Exclude<TopologyPolicy, "none">; // reason: the option has no other values
  return { scope, merge: { policy: merged, nodes: nodes.map(({ id }) => id), distances } };
}

function* runningIn(pods: Iterable<ObservedPod>, isOwn: (uid: string) => boolean): Generator<RunningContainer> {
  for (const { uid, containers } of pods) {
    if (!isOwn(uid)) continue;
    for (const { id, name, state } of containers) if (state === "running") yield { id, uid, name };
  }
}

function podNames({ desired, observer }: TopologyParts): (uid: string) => { namespace: string; pod: string } {
  return (uid) => {
    const { name, namespace } = desired.get(uid)?.pod.metadata ?? observer.get(uid) ?? {};
    return { namespace: namespace ?? "", pod: name ?? "" };
  };
}
