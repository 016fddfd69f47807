import type { Pod } from "../../src/model/generated/types.ts";
import type { MachineTopology } from "../../src/model/machine-topology.ts";
import { type MachineShape, machine } from "./machine.ts";

/** A node and what happens on it. */
export interface TopologyScenario {
  readonly machine: MachineTopology;
  readonly cpuOptions: Readonly<Record<string, string>>;
  /** CPUs that are reserved, and all that is reserved of memory, on NUMA node 0. */
  readonly reservedCpus: number;
  readonly memoryPolicy: "None" | "Static";
  readonly topologyPolicy: "none" | "best-effort" | "restricted" | "single-numa-node";
  readonly topologyScope: "container" | "pod";
  readonly topologyOptions: Readonly<Record<string, string>>;
  /** The gate PodLevelResourceManagers is on, and most pods have pod-level resources. */
  readonly isPodLevel: boolean;
  readonly steps: readonly TopologyStep[];
}

export type TopologyStep = { readonly admit: Pod } | { readonly remove: string } | { readonly restart: true };

/** Memory of each NUMA node, and what is reserved of it. */
export const NODE_MI = 4096;
export const RESERVED_MI = 600;

const SHAPES: readonly MachineShape[] = [
  { sockets: 1, cores: 4, threads: 1 },
  { sockets: 1, cores: 4 },
  { sockets: 2, cores: 3 },
  { sockets: 2, nodes: 2, cores: 2 },
  { sockets: 2, nodes: 2, cores: 5 },
  { sockets: 1, nodes: 2, caches: 2, cores: 2 },
  { sockets: 2, caches: 3, cores: 2 },
];
const CPU_OPTIONS: readonly Readonly<Record<string, string>>[] = [
  {},
  { "full-pcpus-only": "true" },
  { "distribute-cpus-across-numa": "true" },
  { "align-by-socket": "true" },
  { "distribute-cpus-across-cores": "true" },
  { "strict-cpu-reservation": "true" },
  { "prefer-align-cpus-by-uncorecache": "true" },
];

/** Chooses the same for the same seed, on every machine. */
class Chance {
  constructor(private seed: number) {}

  below(limit: number): number {
    this.seed = (Math.imul(this.seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.seed / 2 ** 32) * limit);
  }

  of<T>(list: readonly T[]): T {
    const found = list[this.below(list.length)];
    if (found === undefined) throw new Error("nothing to choose from");
    return found;
  }
}

/** Ten steps, or many with restarts. */
interface ScenarioKind {
  readonly isPodLevel?: boolean;
  readonly length?: number;
}

/** A scenario; the same for the same seed. */
export function topologyScenario(seed: number, { isPodLevel = false, length }: ScenarioKind = {}): TopologyScenario {
  const chance = new Chance(seed);
  for (let warm = 0; warm < 8; warm++) chance.below(2);
  const shape = chance.of(SHAPES);
  const topologyPolicy = chance.of(["none", "best-effort", "restricted", "single-numa-node"] as const);
  const cpuOptions = chance.of(CPU_OPTIONS);
  const isAllowed = cpuOptions["align-by-socket"] === undefined || topologyPolicy !== "single-numa-node";
  const isAligned = topologyPolicy !== "none";
  return {
    machine: machine({ ...shape, memoryBytes: NODE_MI * 2 ** 20 }),
    cpuOptions: isAllowed ? cpuOptions : {},
    reservedCpus: 1 + chance.below(2),
    ...scopeOf(chance, { isPodLevel, isAligned }),
    topologyPolicy,
    topologyOptions: isAligned && chance.below(3) === 0 ? { "prefer-closest-numa-nodes": "true" } : {},
    isPodLevel,
    steps: stepsOf(chance, isPodLevel ? podLevelPod : podOf, length),
  };
}

/**
 * Only with pod scope the original gives memory to pods with pod-level resources: otherwise it rejects those with a
 * container that shares, because it asks for no memory.
 */
function scopeOf(
  chance: Chance,
  { isPodLevel, isAligned }: { readonly isPodLevel: boolean; readonly isAligned: boolean },
): Pick<TopologyScenario, "memoryPolicy" | "topologyScope"> {
  const memoryPolicy = chance.of(["None", "Static", "Static"] as const);
  const topologyScope = chance.of(["container", "pod"] as const);
  if (!isPodLevel || memoryPolicy === "None") return { memoryPolicy, topologyScope };
  return isAligned ? { memoryPolicy, topologyScope: "pod" } : { memoryPolicy: "None", topologyScope };
}

type MakePod = (chance: Chance, name: string) => Pod;

function stepsOf(chance: Chance, make: MakePod, length?: number): readonly TopologyStep[] {
  const present: string[] = [];
  // Many pods are rejected on a node that is full.
  const isCrowded = (): boolean => length !== undefined && present.length > 8;
  return Array.from({ length: length ?? 10 }, (_, at): TopologyStep => {
    if (length !== undefined && chance.below(12) === 0) return { restart: true };
    if (present.length > 0 && (isCrowded() || chance.below(3) === 0)) {
      return { remove: present.splice(chance.below(present.length), 1)[0] ?? "" };
    }
    present.push(`pod-${at}`);
    return { admit: make(chance, `pod-${at}`) };
  });
}

function podOf(chance: Chance, name: string): Pod {
  const kind = chance.below(10);
  const resources = () => {
    const limits = {
      cpu: kind === 0 ? "500m" : String(1 + chance.below(4)),
      memory: `${chance.of([256, 512, 1024, 3000])}Mi`,
    };
    return { limits, requests: kind === 1 ? { cpu: "100m" } : limits };
  };
  const image = "example:1";
  const initContainers = Array.from({ length: chance.below(3) === 0 ? 1 + chance.below(2) : 0 }, (_, at) => ({
    ...(chance.below(3) === 0 && { restartPolicy: "Always" as const }),
    name: `init-${at}`,
    image,
    resources: resources(),
  }));
  const containers = Array.from({ length: 1 + chance.below(2) }, (_, at) => ({
    name: `app-${at}`,
    image,
    resources: resources(),
  }));
  return { metadata: { uid: name, name, namespace: "default" }, spec: { initContainers, containers } };
}

/** A pod with pod-level resources, of which containers have parts for themselves; every fifth has none. */
function podLevelPod(chance: Chance, name: string): Pod {
  if (chance.below(5) === 0) return podOf(chance, name);
  const image = "example:1";
  const own = () => ({ cpus: 1 + chance.below(2), mi: chance.of([256, 512]) });
  const sums = { cpus: 0, mi: 0 };
  const most = { cpus: 0, mi: 0 };
  const container = (kind: "init" | "sidecar" | "regular", at: number) => {
    const isShared = chance.below(2) === 0;
    const { cpus, mi } = isShared ? { cpus: 0, mi: 0 } : own();
    for (const [key, amount] of [["cpus", cpus] as const, ["mi", mi] as const]) {
      if (kind !== "init") sums[key] += amount;
      most[key] = Math.max(most[key], kind === "init" ? sums[key] + amount : sums[key]);
    }
    const amounts = { cpu: String(cpus), memory: `${mi}Mi` };
    const partial = chance.below(2) === 0 ? {} : { requests: { cpu: "100m" } };
    const resources = isShared ? partial : { requests: amounts, limits: amounts };
    const restartPolicy = kind === "sidecar" ? { restartPolicy: "Always" as const } : {};
    return { ...restartPolicy, name: `${kind}-${at}`, image, resources };
  };
  const initContainers = Array.from({ length: chance.below(3) }, (_, at) =>
    container(chance.below(2) === 0 ? "sidecar" : "init", at),
  );
  const containers = Array.from({ length: 1 + chance.below(3) }, (_, at) => container("regular", at));
  const isWhole = chance.below(8) > 0;
  const cpu = isWhole ? String(Math.max(1, most.cpus + chance.below(2))) : `${most.cpus * 1000 + 500}m`;
  const amounts = { cpu, memory: `${most.mi + chance.of([0, 128, 512])}Mi` };
  if (amounts.memory === "0Mi") amounts.memory = "64Mi";
  const resources = { requests: amounts, limits: amounts };
  return { metadata: { uid: name, name, namespace: "default" }, spec: { initContainers, containers, resources } };
}
