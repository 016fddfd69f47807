import type { Pod } from "../model/generated/types.ts";
import { declaredContainers, podIdentity } from "../model/pod-facts.ts";
import { amountOf, canonicalQuantity, compareAmounts, formatQuantity, parseQuantity } from "../model/quantity.ts";
import type { PodConsumption } from "./rank.ts";
import { type Observations, SIGNALS, type StarvedResource } from "./signals.ts";
import { formatAvailable, formatValue, type Threshold } from "./thresholds.ts";

/** Reason of evicted pods, and of pods that are not admitted under pressure. */
export const EVICTED = "Evicted";

export interface EvictionText {
  readonly message: string;
  /** Annotations of the event. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** Why a pod is evicted, with the numbers that decided, in the words of Kubernetes. Pure. */
export function evictionText(
  pod: Pod,
  consumption: PodConsumption | undefined,
  facts: { readonly starved: readonly Threshold[]; readonly observations: Observations },
): EvictionText {
  const [first] = facts.starved;
  const resource: StarvedResource = first === undefined ? "memory" : SIGNALS[first.signal].resource;
  const opening = `The node was low on resource: ${resource}. ${thresholdSentence(resource, facts)}`;
  if (consumption === undefined) return { message: opening, annotations: {} };
  const whole = podSentence(pod, consumption, resource);
  const offenders = offendersOf(pod, consumption, resource);
  const sentences = offenders.map(
    ({ name, usage, request }) =>
      `Container ${name} was using ${usage}, request is ${request}, has larger consumption of ${resource}. `,
  );
  return {
    message: `${opening}${whole.sentence}${sentences.join("")}`,
    annotations: {
      ...whole.annotations,
      offending_containers: offenders.map(({ name }) => name).join(","),
      offending_containers_usage: offenders.map(({ usage }) => usage).join(","),
      starved_resource: resource,
    },
  };
}

function thresholdSentence(
  resource: StarvedResource,
  { starved, observations }: { readonly starved: readonly Threshold[]; readonly observations: Observations },
): string {
  const threshold = starved.find(({ signal }) => SIGNALS[signal].resource === resource);
  const observed = threshold && observations.get(threshold.signal);
  if (threshold === undefined || observed === undefined) return "";
  const quantity = formatValue(threshold.value, observed.capacity);
  return `Threshold quantity: ${quantity}, available: ${formatAvailable(threshold.signal, observed.available)}. `;
}

/** A pod with a memory request of its own is named as a whole. */
function podSentence(
  pod: Pod,
  { memory }: PodConsumption,
  resource: StarvedResource,
): { readonly sentence: string; readonly annotations: Readonly<Record<string, string>> } {
  const request = pod.spec.resources?.requests?.["memory"];
  if (resource !== "memory" || request === undefined || memory === undefined) return { sentence: "", annotations: {} };
  const usage = formatQuantity(amountOf(memory, "binary"));
  const { name } = podIdentity(pod);
  const sentence = `Pod ${name} was using ${usage}, request is ${canonicalQuantity(request)}, has larger consumption of memory. `;
  return { sentence, annotations: { offending_pod: name, offending_pod_usage: usage } };
}

interface Offender {
  readonly name: string;
  readonly usage: string;
  readonly request: string;
}

/** The containers that use more than they request. Ephemeral ones cannot request anything, and do not count. */
function offendersOf(pod: Pod, { containers }: PodConsumption, resource: StarvedResource): readonly Offender[] {
  if (resource !== "memory" && resource !== "ephemeral-storage") return [];
  return containers.flatMap(({ name, memory, logs, layer }): Offender[] => {
    const spec = declaredContainers(pod).find((container) => container.name === name);
    const disk = logs === undefined || layer === undefined ? undefined : logs.bytes + layer.bytes;
    const used = resource === "memory" ? memory : disk;
    if (spec === undefined || used === undefined) return [];
    const usage = amountOf(used, "binary");
    const request = parseQuantity(spec.resources?.requests?.[resource] ?? "0");
    if (compareAmounts(usage, request) <= 0) return [];
    return [{ name, usage: formatQuantity(usage), request: formatQuantity(request) }];
  });
}
