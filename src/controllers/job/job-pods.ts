import { ownValue } from "../../lib/own-value.ts";
import type { Container, EnvVar, Job, Pod, PodTemplateSpec } from "../../model/generated/types.ts";
import { conditionOf } from "../conditions.ts";
import { timeOf } from "../time-text.ts";
import { judgeFailure } from "./failure-policy.ts";

export const TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking";
const INDEX_KEY = "batch.kubernetes.io/job-completion-index";
const FAILURES_ANNOTATION = "batch.kubernetes.io/job-index-failure-count";
const IGNORED_ANNOTATION = "batch.kubernetes.io/job-index-ignored-failure-count";
/** A generated name has five more characters. */
const LONGEST_PREFIX = 58;

export function isIndexed({ spec }: Job): boolean {
  return spec.completionMode === "Indexed";
}

/** Whether a pod is replaced only once it has failed, and not while it is being deleted. */
export function replacesFailedOnly({ spec }: Job): boolean {
  return spec.podReplacementPolicy === "Failed";
}

export function isTracked({ metadata }: Pod): boolean {
  return metadata.finalizers?.includes(TRACKING_FINALIZER) === true;
}

/** The index of a pod of an Indexed job. */
export function indexOf({ metadata }: Pod): number | undefined {
  const text = ownValue(metadata.annotations, INDEX_KEY);
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** How often pods of this index failed before this one, in all or only those that count. */
export function failuresBefore({ metadata }: Pod, which: "all" | "counted"): number {
  const read = (key: string): number => {
    const text = ownValue(metadata.annotations, key) ?? "0";
    return /^\d+$/.test(text) ? Number(text) : 0;
  };
  return read(FAILURES_ANNOTATION) + (which === "all" ? read(IGNORED_ANNOTATION) : 0);
}

/** When a pod ended: by its containers, its condition, its deletion, or its creation. In milliseconds. */
export function finishedAt({ metadata, status }: Pod): number {
  const ends = (status?.containerStatuses ?? []).map(({ state }) => timeOf(state?.terminated?.finishedAt));
  const known = ends.filter((at): at is number => at !== undefined);
  if (known.length > 0 && known.length === ends.length) return Math.max(...known);
  const ready = conditionOf(status?.conditions, "Ready");
  const notReady = ready?.status === "False" ? timeOf(ready.lastTransitionTime ?? undefined) : undefined;
  if (notReady !== undefined) return notReady;
  const deleted = timeOf(metadata.deletionTimestamp);
  if (deleted !== undefined) return deleted - (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
  return timeOf(metadata.creationTimestamp) ?? 0;
}

/** The template of a pod of a job, of an index if it has one. `replaced` is the pod of that index that failed. Pure. */
export function jobTemplate(job: Job, index: number | undefined, replaced: Pod | undefined): PodTemplateSpec {
  const { template } = job.spec;
  const finalizers = [...(template.metadata?.finalizers ?? []).filter((one) => one !== TRACKING_FINALIZER)];
  const metadata = { ...template.metadata, finalizers: [...finalizers, TRACKING_FINALIZER] };
  if (index === undefined) return { ...template, metadata };
  const annotations = { ...metadata.annotations, [INDEX_KEY]: String(index), ...failureCounts(job, replaced) };
  const labels = { ...metadata.labels, [INDEX_KEY]: String(index) };
  const { initContainers, containers = [], ...spec } = template.spec ?? {};
  return {
    metadata: { ...metadata, annotations, labels },
    spec: {
      ...spec,
      hostname: `${job.metadata.name ?? ""}-${index}`,
      containers: containers.map(withIndex),
      ...(initContainers && { initContainers: initContainers.map(withIndex) }),
    },
  };
}

/** The beginning of the name of a pod of an index. */
export function indexedPrefix({ metadata }: Job, index: number): string {
  const suffix = `-${index}-`;
  return `${(metadata.name ?? "").slice(0, LONGEST_PREFIX - suffix.length)}${suffix}`;
}

function withIndex(container: Container): Container {
  const name = "JOB_COMPLETION_INDEX";
  if (container.env?.some((variable) => variable.name === name)) return container;
  const fieldPath = `metadata.labels['${INDEX_KEY}']`;
  const variable: EnvVar = { name, valueFrom: { fieldRef: { fieldPath } } };
  return { ...container, env: [...(container.env ?? []), variable] };
}

function failureCounts({ spec }: Job, replaced: Pod | undefined): Readonly<Record<string, string>> {
  if (spec.backoffLimitPerIndex === undefined) return {};
  if (replaced === undefined) return { [FAILURES_ANNOTATION]: "0" };
  const counted = failuresBefore(replaced, "counted");
  const ignored = failuresBefore(replaced, "all") - counted;
  const { counts } = judgeFailure(spec.podFailurePolicy, replaced);
  const [failures, skipped] = counts ? [counted + 1, ignored] : [counted, ignored + 1];
  return { [FAILURES_ANNOTATION]: String(failures), ...(skipped > 0 && { [IGNORED_ANNOTATION]: String(skipped) }) };
}
