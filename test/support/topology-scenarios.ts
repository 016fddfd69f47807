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
  readonly steps: readonly TopologyStep[];
}

export type TopologyStep = { readonly admit: Pod } | { readonly remove: string };

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

/** A scenario of ten steps; the same for the same seed. */
export function topologyScenario(seed: number): TopologyScenario {
  const chance = new Chance(seed);
  for (let warm = 0; warm < 8; warm++) chance.below(2);
  const shape = chance.of(SHAPES);
  const topologyPolicy = chance.of(["none", "best-effort", "restricted", "single-numa-node"] as const);
  const cpuOptions = chance.of(CPU_OPTIONS);
  const isAllowed = cpuOptions["align-by-socket"] === undefined || topologyPolicy !== "single-numa-node";
  return {
    machine: machine({ ...shape, memoryBytes: NODE_MI * 2 ** 20 }),
    cpuOptions: isAllowed ? cpuOptions : {},
    reservedCpus: 1 + chance.below(2),
    memoryPolicy: chance.of(["None", "Static", "Static"] as const),
    topologyPolicy,
    topologyScope: chance.of(["container", "pod"] as const),
    topologyOptions: topologyPolicy !== "none" && chance.below(3) === 0 ? { "prefer-closest-numa-nodes": "true" } : {},
    steps: stepsOf(chance),
  };
}

function stepsOf(chance: Chance): readonly TopologyStep[] {
  const present: string[] = [];
  return Array.from({ length: 10 }, (_, at): TopologyStep => {
    if (present.length > 0 && chance.below(3) === 0) {
      return { remove: present.splice(chance.below(present.length), 1)[0] ?? "" };
    }
    present.push(`pod-${at}`);
    return { admit: podOf(chance, `pod-${at}`) };
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
