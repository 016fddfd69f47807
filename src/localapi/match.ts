import { nearest } from "../lib/nearest.ts";
import type { PodSummary } from "../model/step.ts";

/** The pod that a user named. `namespace` only when it was given. */
export interface WantedPod {
  readonly name: string;
  readonly namespace?: string;
}

export type PodMatch =
  | { readonly kind: "found"; readonly pod: PodSummary }
  | { readonly kind: "none"; readonly near: readonly string[] }
  | { readonly kind: "several"; readonly names: readonly string[] };

/** Number of pods that are suggested if none is similar. */
const LISTED = 5;

/**
 * Finds a pod by UID, by its full name, or by the name in its manifest: static pods are named `NAME-NODE`, and the
 * node may be left out. A full name takes precedence over a short one. Of two pods with one name the newest wins.
 */
export function matchPod(pods: readonly PodSummary[], wanted: WantedPod, nodeName: string): PodMatch {
  const inNamespace = pods.filter((pod) => wanted.namespace === undefined || pod.namespace === wanted.namespace);
  const rules: ((pod: PodSummary) => boolean)[] = [
    (pod) => pod.uid === wanted.name,
    (pod) => pod.name === wanted.name,
    (pod) => nodeName !== "" && pod.name === `${wanted.name}-${nodeName}`,
  ];
  for (const rule of rules) {
    const found = newestOfEachName(inNamespace.filter(rule));
    const [first] = found;
    if (first === undefined) continue;
    return found.length === 1 ? { kind: "found", pod: first } : { kind: "several", names: found.map(fullName).sort() };
  }
  return { kind: "none", near: nearPods(pods, wanted, nodeName) };
}

/** `namespace/name`, which `matchPod` always resolves. */
export function fullName(pod: { readonly namespace: string; readonly name: string }): string {
  return `${pod.namespace}/${pod.name}`;
}

function newestOfEachName(pods: readonly PodSummary[]): PodSummary[] {
  const newest = new Map<string, PodSummary>();
  for (const pod of pods) {
    const other = newest.get(fullName(pod));
    if (other === undefined || pod.seenAt >= other.seenAt) newest.set(fullName(pod), pod);
  }
  return [...newest.values()];
}

function nearPods(pods: readonly PodSummary[], wanted: WantedPod, nodeName: string): string[] {
  const suffix = `-${nodeName}`;
  const short = (name: string): string =>
    nodeName !== "" && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
  const names = new Map(pods.map((pod) => [short(pod.name), fullName(pod)]));
  const near = nearest(short(wanted.name), names.keys(), LISTED);
  const chosen = near.length > 0 ? near : [...names.keys()].sort().slice(0, LISTED);
  return chosen.map((name) => names.get(name) ?? name);
}
