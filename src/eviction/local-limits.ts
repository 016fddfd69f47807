import type { Pod } from "../model/generated/types.ts";
import { declaredContainers } from "../model/pod-facts.ts";
import type { PodStorage, StoragePart } from "../model/pod-storage.ts";
import { canonicalQuantity, formatQuantity, isZero, parseQuantity, wholeValue } from "../model/quantity.ts";
import { podLimits } from "../model/resources.ts";
import type { Layout } from "./signals.ts";

const STORAGE = "ephemeral-storage";

/** A limit on local storage that a pod exceeds. */
export interface ExceededLimit {
  /** The label of the eviction's metric. */
  readonly signal: "emptydirfs.limit" | "ephemeralpodfs.limit" | "ephemeralcontainerfs.limit";
  readonly message: string;
}

/** True if something limits the local storage of the pod: only then is it measured. */
export function hasStorageLimit(pod: Pod): boolean {
  const isSized = (pod.spec.volumes ?? []).some(({ emptyDir }) => isPositive(emptyDir?.sizeLimit));
  // Not by the sums: each pod is asked in every round.
  return (
    isSized || [pod.spec, ...declaredContainers(pod)].some((part) => part.resources?.limits?.[STORAGE] !== undefined)
  );
}

/** The first limit that the pod exceeds: of a volume, of the pod, of a container, in the words of Kubernetes. Pure. */
export function exceededLimit(
  pod: Pod,
  storage: PodStorage,
  { layout }: { readonly layout: Layout },
): ExceededLimit | undefined {
  return volumeLimit(pod, storage) ?? podLimit(pod, storage) ?? containerLimit(pod, storage, layout);
}

function volumeLimit(pod: Pod, { parts }: PodStorage): ExceededLimit | undefined {
  for (const { name, emptyDir } of pod.spec.volumes ?? []) {
    const { sizeLimit } = emptyDir ?? {};
    if (sizeLimit === undefined || !isPositive(sizeLimit)) continue;
    if (used(parts, "emptyDir", name) <= wholeValue(parseQuantity(sizeLimit))) continue;
    const message = `Usage of EmptyDir volume "${name}" exceeds the limit "${canonicalQuantity(sizeLimit)}". `;
    return { signal: "emptydirfs.limit", message };
  }
  return undefined;
}

function podLimit(pod: Pod, { bytes }: PodStorage): ExceededLimit | undefined {
  const limit = podLimits(pod)[STORAGE];
  if (limit === undefined || bytes <= wholeValue(limit)) return undefined;
  const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${formatQuantity(limit)}. `;
  return { signal: "ephemeralpodfs.limit", message };
}

/** Logs count, and the writable layer unless images have a filesystem of their own, as in Kubernetes. */
function containerLimit(pod: Pod, { parts }: PodStorage, layout: Layout): ExceededLimit | undefined {
  for (const { name, resources } of pod.spec.containers) {
    const limit = resources?.limits?.[STORAGE];
    if (limit === undefined || !isPositive(limit)) continue;
    const layer = layout === "single" ? used(parts, "layer", name) : 0;
    if (used(parts, "log", name) + layer <= wholeValue(parseQuantity(limit))) continue;
    const message = `Container ${name} exceeded its local ephemeral storage limit "${canonicalQuantity(limit)}". `;
    return { signal: "ephemeralcontainerfs.limit", message };
  }
  return undefined;
}

function used(parts: readonly StoragePart[], kind: StoragePart["kind"], name: string): number {
  return parts.find((part) => part.kind === kind && part.name === name && part.isOld !== true)?.usage?.bytes ?? 0;
}

function isPositive(text: string | undefined): boolean {
  return text !== undefined && !isZero(parseQuantity(text));
}
