import { type AgentOptions, isGateOn } from "../config/index.ts";
import type { Pod } from "../model/generated/types.ts";
import { qosClass } from "../model/qos.ts";
import { compareAmounts, parseQuantity } from "../model/quantity.ts";

type ResizeOptions = Pick<AgentOptions, "cpuManagerPolicy" | "memoryManagerPolicy" | "featureGates">;

/**
 * Why a resize is infeasible: what Guaranteed pods have for themselves is allocated once, unless a gate lets it change,
 * and pods as a whole are resized only with a gate. The words are those of Kubernetes. Pure.
 */
export function resizeProblem(options: ResizeOptions, desired: Pod, allocated: Pod): string | undefined {
  const gate = "InPlacePodLevelResourcesVerticalScaling";
  if (!isGateOn(gate, options.featureGates) && isLevelResized(desired, allocated)) return `${gate} is disabled`;
  if (qosClass(desired) !== "Guaranteed") return undefined;
  const isOn = (of: string): boolean => isGateOn(`InPlacePodVerticalScalingExclusive${of}`, options.featureGates);
  // What a pod has as a whole is allocated once as well.
  const isWhole = isGateOn("PodLevelResourceManagers", options.featureGates);
  const refused = (manager: string, policy: string): string =>
    `Resize is infeasible for Guaranteed Pods alongside ${manager} Manager policy "${policy}"`;
  const hasChanged = (name: "cpu" | "memory"): boolean =>
    differs(desired, allocated, name) || (isWhole && podDiffers(desired, allocated, name));
  const isCpu = options.cpuManagerPolicy === "static" && !isOn("CPUs") && hasChanged("cpu");
  if (isCpu) return refused("CPU", options.cpuManagerPolicy);
  const isMemory = options.memoryManagerPolicy === "Static" && !isOn("Memory") && hasChanged("memory");
  return isMemory ? refused("Memory", options.memoryManagerPolicy) : undefined;
}

function differs(a: Pod, b: Pod, name: "cpu" | "memory"): boolean {
  const requests = ({ spec }: Pod): ReadonlyMap<string, string | undefined> =>
    new Map(
      [...(spec.initContainers ?? []), ...spec.containers].map((each) => [each.name, each.resources?.requests?.[name]]),
    );
  const before = requests(b);
  return [...requests(a)].some(([container, text]) => isOther(text, before.get(container)));
}

/** True if anything of what the pod has as a whole is to change. */
function isLevelResized(a: Pod, b: Pod): boolean {
  return (["requests", "limits"] as const).some((side) => {
    const [after, before] = [a.spec.resources?.[side] ?? {}, b.spec.resources?.[side] ?? {}];
    return [...new Set([...Object.keys(after), ...Object.keys(before)])].some((name) =>
      isOther(after[name], before[name]),
    );
  });
}

function podDiffers(a: Pod, b: Pod, name: "cpu" | "memory"): boolean {
  return isOther(a.spec.resources?.requests?.[name], b.spec.resources?.requests?.[name]);
}

function isOther(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return a !== b;
  return compareAmounts(parseQuantity(a), parseQuantity(b)) !== 0;
}
