import { ownValue } from "../../lib/own-value.ts";
import { canonicalJson } from "../../model/canonical-json.ts";
import type { Deployment, PodTemplateSpec, ReplicaSet } from "../../model/generated/types.ts";
import { oldestFirst } from "./replica-counts.ts";

export const HASH_LABEL = "pod-template-hash";
export const REVISION_ANNOTATION = "deployment.kubernetes.io/revision";
const HISTORY_ANNOTATION = "deployment.kubernetes.io/revision-history";
/** The longest history of revisions, in characters. */
const LONGEST_HISTORY = 2000;
const NOT_COPIED = [
  ...["kubectl.kubernetes.io/last-applied-configuration", REVISION_ANNOTATION, HISTORY_ANNOTATION],
  ...["deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"],
  "deprecated.deployment.rollback.to",
];

/** The set of a deployment's own template; the oldest if there are several. Pure. */
export function findNewSet({ spec }: Deployment, sets: readonly ReplicaSet[]): ReplicaSet | undefined {
  const wanted = comparable(spec.template);
  return oldestFirst(sets).find((set) => comparable(set.spec.template ?? {}) === wanted);
}

function comparable(template: PodTemplateSpec): string {
  const { [HASH_LABEL]: _hash, ...labels } = template.metadata?.labels ?? {};
  const { labels: _labels, annotations, ...metadata } = template.metadata ?? {};
  const filled = Object.keys(annotations ?? {}).length > 0 ? { annotations } : {};
  return canonicalJson({ ...template, metadata: { ...withoutNulls(metadata), ...filled, labels } });
}

function withoutNulls(record: object): object {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null));
}

/** The revision of a set; 0 without one. */
export function revisionOf({ metadata }: Pick<ReplicaSet, "metadata">): number {
  const text = ownValue(metadata.annotations, REVISION_ANNOTATION) ?? "0";
  return /^\d+$/.test(text) ? Number(text) : 0;
}

/** The annotations of the newest set: those of the deployment, and its revision with the ones that it had before. Pure. */
export function newSetAnnotations(
  { metadata }: Deployment,
  known: Readonly<Record<string, string>>,
  revision: number,
): Readonly<Record<string, string>> {
  const copied = Object.entries(metadata.annotations ?? {}).filter(([key]) => !NOT_COPIED.includes(key));
  const next: Record<string, string> = { ...known, ...Object.fromEntries(copied) };
  const old = ownValue(known, REVISION_ANNOTATION);
  if (old !== undefined && !/^\d+$/.test(old)) return next;
  if (Number(old ?? "0") >= revision) return next;
  next[REVISION_ANNOTATION] = String(revision);
  if (old !== undefined) {
    const history = longEnough([...(next[HISTORY_ANNOTATION] ?? "").split(",").filter((text) => text !== ""), old]);
    next[HISTORY_ANNOTATION] = history.join(",");
  }
  return next;
}

function longEnough(revisions: readonly string[]): readonly string[] {
  let kept = revisions;
  while (kept.join(",").length > LONGEST_HISTORY) kept = kept.slice(1);
  return kept;
}

/** Old sets that the history has no room for and that nothing runs of, the oldest first. Pure. */
export function expiredSets({ spec }: Deployment, oldSets: readonly ReplicaSet[]): readonly ReplicaSet[] {
  const limit = spec.revisionHistoryLimit ?? 10;
  const kept = oldSets.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const surplus = Math.max(0, kept.length - limit);
  const byRevision = [...oldestFirst(kept)].sort((a, b) => revisionOf(a) - revisionOf(b));
  return byRevision.slice(0, surplus).filter(({ metadata, spec: { replicas }, status }) => {
    const isSeen = (metadata.generation ?? 0) <= (status?.observedGeneration ?? 0);
    return (status?.replicas ?? 0) === 0 && replicas === 0 && isSeen;
  });
}
