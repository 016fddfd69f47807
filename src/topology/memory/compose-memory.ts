import type { AgentOptions } from "../../config/index.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import type { MachineTopology } from "../../model/machine-topology.ts";
import { type Amount, parseQuantity, subtractAmounts } from "../../model/quantity.ts";
import type { HintProvider } from "../../model/topology.ts";
import { OtherPolicyError } from "../other-policy-error.ts";
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
  resources(): Readonly<Record<"capacity" | "allocatable", Readonly<Record<string, string>>>>;
}

/** The memory policy of this run. */
export interface MemoryPart {
  readonly state: MemoryState;
  readonly providers: readonly HintProvider[];
  /** Call when a container of the pod is created: those that initialized the pod before it have completed. */
  created(pod: Pod, container: Container): void;
}

/** Builds the memory policy. Throws an Error if this machine or the persisted state does not allow it. */
export function composeMemory(parts: MemoryParts): MemoryPart {
  const { options, machine, metrics } = parts;
  const { memoryManagerPolicy: policy, reservedMemory } = options;
  const isStatic = policy === "Static";
  if (isStatic) {
    const problem = reservationProblem(machine.nodes, reservedMemory, reservedByNode(parts.resources()));
    if (problem !== undefined) throw new Error(problem);
  }
  const path = `${options.rootDir}/${MEMORY_STATE_FILE}`;
  const loaded = loadState(parts, path);
  const state = isStatic
    ? validated(() => validMemoryState(idleMemory(machine.nodes, reservedMemory), loaded))
    : loaded;
  const writer = new StateWriter(parts, { path, text: () => encodeMemoryState(policy, state) });
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
  const provider = new StaticMemory({ state, writer, counted });
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
    const what = `please drain this node and delete the memory manager checkpoint file "${path}" before restarting Kubelet`;
    throw new Error(`could not restore state from checkpoint: ${messageOf(error)}, ${what}`);
  }
}

function validated(validate: () => MemoryState): MemoryState {
  try {
    return validate();
  } catch (error) {
    throw new Error(`invalid state, please drain node and remove policy state file: ${messageOf(error)}`);
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
