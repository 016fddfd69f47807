import { ownValue } from "../lib/own-value.ts";
import type { Pod, PodSpec, Taint, Toleration } from "./generated/types.ts";
import { matchesNodeSelector, type SelectedNode } from "./node-selector.ts";
import { isSidecar } from "./pod-facts.ts";
import { milliValue, tryParseQuantity, wholeValue } from "./quantity.ts";
import { podRequests } from "./resources.ts";

// Whether a pod fits a node: what a scheduler asks before it binds the pod, and the node before it runs it.

/** True if the node selector and the required node affinity of a pod match the node. */
export function selectsNode({ spec }: Pod, node: SelectedNode): boolean {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const isSelected = Object.entries(spec.nodeSelector ?? {}).every(
    ([key, value]) => ownValue(node.labels, key) === value,
  );
  return isSelected && (required === undefined || matchesNodeSelector(required, node));
}

/** How tolerations are read. */
export interface TolerationRules {
  /** The operators Lt and Gt compare numbers (gate TaintTolerationComparisonOperators); else they cover nothing. */
  readonly comparesNumbers?: boolean | undefined;
}

/** True if a toleration covers a taint: an empty key with Exists covers all, an empty effect covers every effect. */
export function tolerates(toleration: Toleration, taint: Taint, { comparesNumbers }: TolerationRules = {}): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  const { operator = "", value = "" } = toleration;
  if (operator === "Exists") return true;
  if (operator === "Lt" || operator === "Gt")
    return comparesNumbers === true && isCovered(operator, value, taint.value);
  return (operator === "" || operator === "Equal") && (toleration.key ?? "") !== "" && value === (taint.value ?? "");
}

/** True if the number of a taint is less, or greater, than that of a toleration. */
function isCovered(operator: "Lt" | "Gt", value: string, ofTaint = ""): boolean {
  const isNumber = (text: string): boolean => /^(0|-?[1-9]\d*)$/.test(text);
  if (!isNumber(value) || !isNumber(ofTaint)) return false;
  return operator === "Lt" ? BigInt(ofTaint) < BigInt(value) : BigInt(ofTaint) > BigInt(value);
}

/** The taints that a pod does not tolerate. */
export function untolerated({ spec }: Pod, taints: readonly Taint[], rules: TolerationRules = {}): readonly Taint[] {
  return taints.filter((taint) => !(spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint, rules)));
}

interface HostPort {
  readonly port: number;
  readonly protocol: string;
  readonly ip: string;
}

/** True if a pod wants a port of the host that another one has. */
export function clashesOnPorts(pod: Pod, others: readonly Pod[]): boolean {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return false;
  return others.some((other) => hostPorts(other).some((taken) => wanted.some((port) => clashes(port, taken))));
}

function hostPorts({ spec }: Pod): HostPort[] {
  const sidecars = (spec.initContainers ?? []).filter(isSidecar);
  return [...spec.containers, ...sidecars].flatMap((container) =>
    (container.ports ?? [])
      .filter((port) => (port.hostPort ?? 0) > 0)
      .map((port) => ({ port: port.hostPort ?? 0, protocol: port.protocol ?? "TCP", ip: port.hostIP ?? "" })),
  );
}

function clashes(a: HostPort, b: HostPort): boolean {
  const isAny = (ip: string): boolean => ip === "" || ip === "0.0.0.0" || ip === "::";
  return a.port === b.port && a.protocol === b.protocol && (isAny(a.ip) || isAny(b.ip) || a.ip === b.ip);
}

/** An insufficient resource of the node, in its smallest unit (millicores, bytes, pieces). */
export interface Shortage {
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly capacity: number;
}

/** The resources that every node has; others count only if the node reports them. */
const NATIVE = ["cpu", "memory", "ephemeral-storage"];

/** What a node has, and who has some of it already. */
export interface NodeRoom {
  readonly allocatable: Readonly<Record<string, string>>;
  readonly others: readonly Pod[];
}

/** Returns the resources that are insufficient for this pod, in the order of Kubernetes. */
export function shortagesOf(pod: Pod, { allocatable, others }: NodeRoom): readonly Shortage[] {
  const asked = requestsOf(pod);
  const names = ["pods", ...NATIVE, ...Object.keys(asked).filter((name) => !NATIVE.includes(name) && name !== "pods")];
  const counted = names.flatMap((resource) => {
    const capacity = capacityOf(allocatable, resource);
    const requested = ownValue(asked, resource) ?? 0;
    return capacity === undefined || requested === 0 ? [] : [{ resource, requested, capacity }];
  });
  const sums = sumOf(
    others,
    counted.map(({ resource }) => resource),
  );
  return counted.flatMap(({ resource, requested, capacity }) => {
    const used = sums.get(resource) ?? 0;
    return requested + used > capacity ? [{ resource, requested, used, capacity }] : [];
  });
}

/** The requests of the pods together, at least those of `names`. This pod or those may have thousands of names. */
function sumOf(pods: readonly Pod[], names: readonly string[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const pod of pods) {
    const requests = requestsOf(pod);
    const own = Object.keys(requests);
    for (const name of own.length < names.length ? own : names) {
      sums.set(name, (sums.get(name) ?? 0) + (ownValue(requests, name) ?? 0));
    }
  }
  return sums;
}

/** What was added up before: each verdict asks for the requests of all pods on the node. */
const known = new WeakMap<PodSpec, Readonly<Record<string, number>>>();

/** Returns the requests of a pod as plain numbers, and 1 of `pods`. */
export function requestsOf(pod: Pod): Readonly<Record<string, number>> {
  const before = known.get(pod.spec);
  if (before !== undefined) return before;
  const amounts = Object.entries(podRequests(pod)).map(
    ([name, amount]) => [name, name === "cpu" ? milliValue(amount) : wholeValue(amount)] as const,
  );
  const requests = { ...Object.fromEntries(amounts), pods: 1 };
  known.set(pod.spec, requests);
  return requests;
}

function capacityOf(allocatable: NodeRoom["allocatable"], resource: string): number | undefined {
  const amount = tryParseQuantity(ownValue(allocatable, resource) ?? "");
  if (amount === undefined) return undefined;
  return resource === "cpu" ? milliValue(amount) : wholeValue(amount);
}
