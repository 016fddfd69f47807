import { type AgentOptions, ConfigurationError } from "../../config/index.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import type { MachineTopology } from "../../model/machine-topology.ts";
import { type Amount, parseQuantity, subtractAmounts } from "../../model/quantity.ts";
import type { HintProvider } from "../../model/topology.ts";
import type { Demand } from "../demand.ts";
import { OtherPolicyError } from "../other-policy-error.ts";
import type { AllocationCounters } from "../pinning-metrics.ts";
import { unreadableState, validated } from "../state-problem.ts";
import { type StateFiles, StateWriter } from "../state-writer.ts";
import { idleMemory, reservationProblem } from "./machine-memory.ts";
import { decodeMemoryState, encodeMemoryState, MEMORY_STATE_FILE } from "./memory-checkpoint.ts";
import { MemoryState } from "./memory-state.ts";
import { validMemoryState } from "./start-memory.ts";
import { StaticMemory } from "./static-memory.ts";

/** What the memory policy is built from. */
export interface MemoryParts {
  readonly options: AgentOptions;
  readonly machine: MachineTopology;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly files: StateFiles;
  readonly demand: Demand;
  readonly allocations: AllocationCounters;
  /** The gate PodLevelResourceManagers. */
  readonly managesPodLevel: boolean;
  resources(): Readonly<Record<"capacity" | "allocatable", Readonly<Record<string, string>>>>;
}

/** The memory policy of this run. */
export interface MemoryPart {
  readonly state: MemoryState;
  readonly providers: readonly HintProvider[];
  /** Call when a container of the pod is created: those that initialized the pod before it have completed. */
  created(pod: Pod, container: Container): void;
}

/** Builds the memory policy. Throws a ConfigurationError if this machine or the persisted state does not allow it. */
export function composeMemory(parts: MemoryParts): MemoryPart {
  const { options, machine, metrics } = parts;
  const { memoryManagerPolicy: policy, reservedMemory } = options;
  const isStatic = policy === "Static";
  if (isStatic) {
    const problem = reservationProblem(machine.nodes, reservedMemory, reservedByNode(parts.resources()));
    if (problem !== undefined) throw new ConfigurationError("Impossible", problem);
  }
  const path = `${options.rootDir}/${MEMORY_STATE_FILE}`;
  const loaded = loadState(parts, path);
  const { state, isRecounted } = isStatic
    ? validated(() => validMemoryState(idleMemory(machine.nodes, reservedMemory), loaded))
    : { state: loaded, isRecounted: false };
  if (isRecounted) parts.log.warn("Counted memory of NUMA nodes anew: the state file had lost count", { path });
  const text = (): string => encodeMemoryState({ policy, state, hasPods: parts.managesPodLevel });
  const writer = new StateWriter(parts, { path, text });
  writer.saveLater();
  const requests = metrics.counter(
    "kubelet_memory_manager_pinning_requests_total",
    "Allocations of memory to single containers that were asked for.",
  );
  const errors = metrics.counter(
    "kubelet_memory_manager_pinning_errors_total",
    "Allocations of memory to single containers that failed.",
  );
  if (!isStatic) return { state, providers: [], created: () => undefined };
  const counted = { requested: () => requests.inc(), failed: () => errors.inc() };
  const provider = new StaticMemory({ ...parts, state, writer, counted });
  return { state, providers: [provider], created: (pod, container) => provider.created(pod, container) };
}

function loadState({ options, files, log }: MemoryParts, path: string): MemoryState {
  try {
    const text = files.read(path);
    return text === undefined ? new MemoryState() : decodeMemoryState(text, options.memoryManagerPolicy);
  } catch (error) {
    // Nobody has memory of his own: a file that is damaged is written anew.
    if (options.memoryManagerPolicy === "None" && !(error instanceof OtherPolicyError)) {
      log.warn("Ignored damaged state file", { path, error: messageOf(error) });
      return new MemoryState();
    }
    throw unreadableState(error, "memory", path);
  }
}

/** What the node as a whole reserves of memory and huge pages; memory for huge pages is not reserved. */
function reservedByNode({ capacity, allocatable }: ReturnType<MemoryParts["resources"]>): Record<string, Amount> {
  const names = Object.keys(capacity).filter((name) => name === "memory" || name.startsWith("hugepages-"));
  const pages = names.filter((name) => name !== "memory");
  const reserved = names.map((name) => {
    const own = subtractAmounts(amountIn(capacity, name), amountIn(allocatable, name));
    const others = name === "memory" ? pages.map((page) => amountIn(capacity, page)) : [];
    return [name, others.reduce(subtractAmounts, own)] as const;
  });
  return Object.fromEntries(reserved);
}

function amountIn(amounts: Readonly<Record<string, string>>, name: string): Amount {
  return parseQuantity(amounts[name] ?? "0");
}
