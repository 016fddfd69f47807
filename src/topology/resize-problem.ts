import { type AgentOptions, isGateOn } from "../config/index.ts";
import type { Pod } from "../model/generated/types.ts";
import { qosClass } from "../model/qos.ts";
import { compareAmounts, parseQuantity } from "../model/quantity.ts";

type ResizeOptions = Pick<AgentOptions, "cpuManagerPolicy" | "memoryManagerPolicy" | "featureGates">;

/**
 * Why a resize is infeasible: what Guaranteed pods have for themselves is allocated once, unless a gate lets it change.
 * The words are those of Kubernetes. Pure.
 */
export function resizeProblem(options: ResizeOptions, desired: Pod, allocated: Pod): string | undefined {
  if (qosClass(desired) !== "Guaranteed") return undefined;
  const isOn = (gate: string): boolean => isGateOn(`InPlacePodVerticalScalingExclusive${gate}`, options.featureGates);
  const refused = (manager: string, policy: string): string =>
    `Resize is infeasible for Guaranteed Pods alongside ${manager} Manager policy "${policy}"`;
  const isCpu = options.cpuManagerPolicy === "static" && !isOn("CPUs") && differs(desired, allocated, "cpu");
  if (isCpu) return refused("CPU", options.cpuManagerPolicy);
  const isMemory = options.memoryManagerPolicy === "Static" && !isOn("Memory") && differs(desired, allocated, "memory");
  return isMemory ? refused("Memory", options.memoryManagerPolicy) : undefined;
}

function differs(a: Pod, b: Pod, name: "cpu" | "memory"): boolean {
  const requests = ({ spec }: Pod): ReadonlyMap<string, string | undefined> =>
    new Map(
      [...(spec.initContainers ?? []), ...spec.containers].map((each) => [each.name, each.resources?.requests?.[name]]),
    );
  const before = requests(b);
  return [...requests(a)].some(([container, text]) => {
    const other = before.get(container);
    if (text === undefined || other === undefined) return text !== other;
    return compareAmounts(parseQuantity(text), parseQuantity(other)) !== 0;
  });
}
