import { isDeepStrictEqual } from "node:util";
import { JOBS } from "../../../adapters/kubeapi/index.ts";
import { ownValue } from "../../../lib/own-value.ts";
import type {
  Job,
  JobSpec,
  PodFailurePolicy,
  PodFailurePolicyOnPodConditionsPattern,
} from "../../../model/generated/types.ts";
import { matchesLabels } from "../../../model/label-selector.ts";
import { type FieldError, invalid, required } from "../../status/field-error.ts";
import { AGE, containerColumns, NAME, selectorColumn, tableOf } from "../../tables/columns.ts";
import { humanDuration } from "../../tables/human-duration.ts";
import { labelProblems } from "../../validation/formats.ts";
import { selectorErrors } from "../../validation/selectors.ts";
import { defaultTemplate } from "../apps/template.ts";
import { defineKind } from "../kind.ts";
import { jobErrors, jobUpdateErrors } from "./job-validation.ts";

const UID_LABEL = "batch.kubernetes.io/controller-uid";
const NAME_LABEL = "batch.kubernetes.io/job-name";
const OLD_UID_LABEL = "controller-uid";
const OLD_NAME_LABEL = "job-name";

export const jobKind = defineKind<Job>({
  resource: JOBS,
  categories: ["all"],
  hasGeneration: true,
  // For compatibility; kubectl always says what it wants.
  propagation: "Orphan",
  defaults: (job) => {
    const { metadata, spec } = job;
    const labels = spec.template.metadata?.labels;
    const hasLabels = Object.keys(metadata.labels ?? {}).length > 0;
    const named = labels === undefined || hasLabels ? metadata : { ...metadata, labels };
    return { ...job, metadata: named, spec: defaultJobSpec(spec) };
  },
  prepareCreate: (job) => (job.spec.manualSelector === true ? job : withSelector(job)),
  validate: (job) => [
    ...generatedErrors(job),
    ...jobErrors(job.spec, "spec"),
    ...selectorProblems(job),
    ...hostnameErrors(job),
  ],
  validateUpdate: jobUpdateErrors,
  selectableFields: ({ status }) => ({ "status.successful": String(status?.succeeded ?? 0) }),
  status: {},
  table: tableOf<Job>([
    NAME,
    { name: "Status", cell: statusText },
    { name: "Completions", cell: completionsText },
    { name: "Duration", cell: durationText },
    AGE,
    ...containerColumns<Job>(({ spec }) => spec.template.spec?.containers ?? []),
    selectorColumn<Job>(({ spec }) => spec.selector),
  ]),
});

/** A spec of a job with its defaults. */
export function defaultJobSpec(spec: JobSpec): JobSpec {
  const isSingle = spec.completions === undefined && spec.parallelism === undefined;
  return {
    ...spec,
    ...(isSingle && { completions: 1 }),
    parallelism: spec.parallelism ?? 1,
    backoffLimit: spec.backoffLimit ?? (spec.backoffLimitPerIndex === undefined ? 6 : 2 ** 31 - 1),
    completionMode: spec.completionMode ?? "NonIndexed",
    suspend: spec.suspend ?? false,
    podReplacementPolicy: spec.podReplacementPolicy ?? (spec.podFailurePolicy ? "Failed" : "TerminatingOrFailed"),
    manualSelector: spec.manualSelector ?? false,
    ...(spec.podFailurePolicy && { podFailurePolicy: defaultFailurePolicy(spec.podFailurePolicy) }),
    template: defaultTemplate(spec.template),
  };
}

/** A pattern of a condition is one that is true. */
function defaultFailurePolicy({ rules }: PodFailurePolicy): PodFailurePolicy {
  const pattern = (one: PodFailurePolicyOnPodConditionsPattern) => ({ ...one, status: one.status || "True" });
  return {
    rules: (rules ?? []).map((rule) => ({
      ...rule,
      ...(rule.onPodConditions && { onPodConditions: rule.onPodConditions.map(pattern) }),
    })),
  };
}

/** A job finds its pods by its own UID, unless it brings a selector. */
function withSelector(job: Job): Job {
  const { uid = "", name = "" } = job.metadata;
  const { template } = job.spec;
  const given = template.metadata?.labels ?? {};
  const own = { [OLD_UID_LABEL]: uid, [UID_LABEL]: uid, [OLD_NAME_LABEL]: name, [NAME_LABEL]: name };
  const missing = Object.entries(own).filter(([key]) => ownValue(given, key) === undefined);
  const labels = { ...given, ...Object.fromEntries(missing) };
  const selector = { ...job.spec.selector, matchLabels: { ...job.spec.selector?.matchLabels, [UID_LABEL]: uid } };
  const metadata = { ...template.metadata, labels };
  // A job without labels has those of its template, also the generated ones, as in Kubernetes.
  const isTaken = isDeepStrictEqual(job.metadata.labels ?? {}, given);
  return {
    ...job,
    metadata: isTaken ? { ...job.metadata, labels } : job.metadata,
    spec: { ...job.spec, selector, template: { ...template, metadata } },
  };
}

/** The labels and the selector that a job has unless it brings its own. */
function generatedErrors({ metadata, spec }: Job): readonly FieldError[] {
  const { uid = "", name = "" } = metadata;
  if (spec.manualSelector === true || spec.selector === undefined) return [];
  const labels = spec.template.metadata?.labels ?? {};
  const own: Readonly<Record<string, string>> = {
    [OLD_UID_LABEL]: uid,
    [OLD_NAME_LABEL]: name,
    [UID_LABEL]: uid,
    [NAME_LABEL]: name,
  };
  const errors = Object.entries(own)
    .filter(([key, value]) => ownValue(labels, key) !== value)
    .map(([key, value]) => invalid(`spec.template.metadata.labels[${key}]`, labels, `must be '${value}'`));
  if (!matchesLabels(spec.selector, own)) {
    errors.push(invalid("spec.selector", spec.selector, "`selector` not auto-generated"));
  }
  return errors;
}

/** A job that does not find its own pods would create them without end. */
function selectorProblems({ spec }: Job): readonly FieldError[] {
  const labels = spec.template.metadata?.labels ?? {};
  const shown = spec.template.metadata?.labels ?? null;
  const mismatch = invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`");
  if (spec.selector === undefined) return [required("spec.selector"), mismatch];
  const errors = selectorErrors(spec.selector, "spec.selector");
  return errors.length > 0 || matchesLabels(spec.selector, labels) ? errors : [mismatch];
}

/** Pods of an indexed job are called after it and their index. */
function hostnameErrors({ metadata: { name = "" }, spec }: Job): readonly FieldError[] {
  if (spec.completionMode !== "Indexed" || !spec.completions || spec.completions < 1) return [];
  const longest = `${name}-${spec.completions - 1}`;
  if (labelProblems(longest).length === 0) return [];
  return [invalid("metadata.name", name, `will not able to create pod with invalid DNS label: ${longest}`)];
}

function hasCondition({ status }: Job, wanted: string): boolean {
  return status?.conditions?.find(({ type }) => type === wanted)?.status === "True";
}

function statusText(job: Job): string {
  if (hasCondition(job, "Complete")) return "Complete";
  if (hasCondition(job, "Failed")) return "Failed";
  if (job.metadata.deletionTimestamp !== undefined) return "Terminating";
  const words = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
  return words.find((word) => hasCondition(job, word)) ?? "Running";
}

function completionsText({ spec, status }: Job): string {
  const done = status?.succeeded ?? 0;
  if (spec.completions !== undefined) return `${done}/${spec.completions}`;
  const parallelism = spec.parallelism ?? 0;
  return parallelism > 1 ? `${done}/1 of ${parallelism}` : `${done}/1`;
}

function durationText({ status }: Job, now: number): string {
  if (!status?.startTime) return "";
  const end = status.completionTime ? Date.parse(status.completionTime) : now;
  return humanDuration(end - Date.parse(status.startTime));
}
