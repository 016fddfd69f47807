import type { Container, Pod, ResourceRequirements } from "../model/generated/types.ts";
import { isSidecar } from "../model/pod-facts.ts";
import { qosClass } from "../model/qos.ts";
import { compareAmounts, milliValue, parseQuantity, wholeValue } from "../model/quantity.ts";

/** Amounts by resource. */
export type Amounts = ReadonlyMap<string, number>;

const NOTHING: Amounts = new Map();

/**
 * What pods and their containers get for themselves: only those that are Guaranteed do. Pods with pod-level resources are
 * left alone unless `managesPodLevel` (the gate PodLevelResourceManagers): then the pod gets what it requests as a whole,
 * and those of its containers whose limits equal their requests get a part of it.
 */
export class Demand {
  /** What is known of pods: it is asked for each of their containers, of which there may be thousands. */
  private readonly known = new WeakMap<Pod, boolean>();

  constructor(private readonly options: { readonly managesPodLevel: boolean }) {}

  /** True if containers of the pod can have something for themselves. */
  canHaveExclusive(pod: Pod): boolean {
    const known = this.known.get(pod);
    if (known !== undefined) return known;
    const isOpen = this.options.managesPodLevel || !hasPodLevelResources(pod);
    const can = isOpen && qosClass(pod) === "Guaranteed";
    this.known.set(pod, can);
    return can;
  }

  /** True if the pod has pod-level resources that are managed. */
  isPodLevel(pod: Pod): boolean {
    return this.options.managesPodLevel && hasPodLevelResources(pod);
  }

  /** The number of whole CPUs that the container gets for itself; 0 if it shares. */
  cpus(pod: Pod, container: Container): number {
    return this.isEligible(pod, container) ? wholeCpus(container.resources) : 0;
  }

  /** The number of whole CPUs that all containers of the pod get. */
  podCpus(pod: Pod): number {
    if (!this.canHaveExclusive(pod)) return 0;
    if (hasPodLevelResources(pod)) return wholeCpus(pod.spec.resources);
    return podDemand(pod, (container) => new Map([["cpu", this.cpus(pod, container)]])).get("cpu") ?? 0;
  }

  /** Bytes of memory and of each size of huge pages that the container gets for itself; nothing if it shares. */
  memory(pod: Pod, container: Container): Amounts {
    return this.isEligible(pod, container) ? memoryIn(container.resources) : NOTHING;
  }

  /** The same for all containers. As in Kubernetes, kinds of memory that only initialization needs do not count. */
  podMemory(pod: Pod): Amounts {
    if (!this.canHaveExclusive(pod)) return NOTHING;
    if (hasPodLevelResources(pod)) return memoryIn(pod.spec.resources);
    const all = podDemand(pod, (container) => this.memory(pod, container));
    const names = new Set(pod.spec.containers.flatMap((container) => [...this.memory(pod, container).keys()]));
    return new Map([...all].filter(([name]) => names.has(name)));
  }

  private isEligible(pod: Pod, container: Container): boolean {
    if (!this.canHaveExclusive(pod)) return false;
    return !hasPodLevelResources(pod) || isGuaranteed(container.resources);
  }
}

/** True if the pod as a whole requests or limits CPU, memory or huge pages. */
export function hasPodLevelResources({ spec }: Pod): boolean {
  const { requests = {}, limits = {} } = spec.resources ?? {};
  return [...Object.keys(requests), ...Object.keys(limits)].some((name) => name === "cpu" || isMemory(name));
}

/** What all containers need at the worst moment: all that keep running, or one that initializes beside sidecars. */
function podDemand(pod: Pod, of: (container: Container) => Amounts): Amounts {
  const running = new Map<string, number>();
  const initial = new Map<string, number>();
  const add = (container: Container): void => {
    for (const [name, amount] of of(container)) running.set(name, (running.get(name) ?? 0) + amount);
  };
  for (const container of pod.spec.initContainers ?? []) {
    if (isSidecar(container)) {
      add(container);
      continue;
    }
    for (const [name, amount] of of(container)) {
      initial.set(name, Math.max(initial.get(name) ?? 0, (running.get(name) ?? 0) + amount));
    }
  }
  for (const container of pod.spec.containers) add(container);
  const names = new Set([...running.keys(), ...initial.keys()]);
  return new Map([...names].map((name) => [name, Math.max(running.get(name) ?? 0, initial.get(name) ?? 0)]));
}

/** The requested CPUs if they are a whole number, else 0. */
function wholeCpus(resources: ResourceRequirements | undefined): number {
  const request = resources?.requests?.["cpu"];
  if (request === undefined) return 0;
  const milli = milliValue(parseQuantity(request));
  return milli % 1000 === 0 ? milli / 1000 : 0;
}

/** A pod may ask for 0 huge pages of a size that the machine does not have: it gets nothing for that. */
function memoryIn(resources: ResourceRequirements | undefined): Amounts {
  const counted = Object.entries(resources?.requests ?? {}).filter(([name]) => isMemory(name));
  const amounts = counted.map(([name, text]) => [name, wholeValue(parseQuantity(text))] as const);
  return new Map(amounts.filter(([, bytes]) => bytes > 0));
}

/** True if a container alone would make its pod Guaranteed. */
function isGuaranteed(resources: ResourceRequirements | undefined): boolean {
  return ["cpu", "memory"].every((name) => {
    const [request, limit] = [resources?.requests?.[name], resources?.limits?.[name]];
    if (request === undefined || limit === undefined) return false;
    const amount = parseQuantity(request);
    return amount.nano > 0n && compareAmounts(amount, parseQuantity(limit)) === 0;
  });
}

function isMemory(name: string): boolean {
  return name === "memory" || name.startsWith("hugepages-");
}
