import { isDeepStrictEqual } from "node:util";
import type { Job, JobSpec, PodSpec, PodTemplateSpec } from "../../../model/generated/types.ts";
import { type FieldError, IMMUTABLE, invalid, notSupported, required, tooLong } from "../../status/field-error.ts";
import { subdomainProblems } from "../../validation/formats.ts";
import { nonNegative } from "../../validation/numbers.ts";
import { templateErrors } from "../../validation/pod-template.ts";
import { failurePolicyErrors, successPolicyErrors } from "./job-policies.ts";

/** Of indexed jobs, so that the lists of indexes in the status stay short; as in Kubernetes. */
const MOST_PARALLEL = 100_000;
const MOST_FAILED_INDEXES = 100_000;
/** Above so many completions the limits are lower. */
const MANY_COMPLETIONS = 100_000;
const MOST_OF_MANY = 10_000;
const MOST_MANAGER_BYTES = 63;
const NUMBERS = [
  ...(["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit"] as const),
  ...(["ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"] as const),
];

/** What is wrong with a spec of a job at a path, beside its selector. */
export function jobErrors(spec: JobSpec, path: string): FieldError[] {
  const errors = NUMBERS.flatMap((field) => nonNegative(spec[field], `${path}.${field}`));
  if (spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined) {
    errors.push(required(`${path}.backoffLimitPerIndex`, "when maxFailedIndexes is specified"));
  }
  errors.push(...managerErrors(spec.managedBy, `${path}.managedBy`), ...indexErrors(spec, path));
  if (spec.podFailurePolicy !== undefined) errors.push(...failurePolicyErrors(spec, path));
  errors.push(...successPolicyErrors(spec, path), ...replacementErrors(spec, `${path}.podReplacementPolicy`));
  errors.push(...templateErrors(spec.template, `${path}.template`));
  errors.push(...restartErrors(spec, `${path}.template.spec.restartPolicy`));
  return errors;
}

function managerErrors(manager: string | undefined, at: string): readonly FieldError[] {
  if (manager === undefined) return [];
  if (manager === "") return [required(at)];
  const slash = manager.indexOf("/");
  const [host, path] = [manager.slice(0, slash), manager.slice(slash + 1)];
  const long = manager.length > MOST_MANAGER_BYTES ? [tooLong(at, MOST_MANAGER_BYTES)] : [];
  if (slash < 1 || path === "") {
    return [invalid(at, manager, 'must be a domain-prefixed path (such as "acme.io/foo")'), ...long];
  }
  const hostErrors = subdomainProblems(host).map((message) => invalid(at, host, message));
  if (/^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$/.test(path)) return [...hostErrors, ...long];
  const message = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
  return [...hostErrors, invalid(at, path, message), ...long];
}

function indexErrors(spec: JobSpec, path: string): readonly FieldError[] {
  const { completionMode, completions, parallelism = 0, maxFailedIndexes, backoffLimitPerIndex } = spec;
  const errors: FieldError[] = [];
  const atMost = (field: "parallelism" | "maxFailedIndexes", most: number, when: string): void => {
    const value = spec[field] ?? 0;
    if (value > most) errors.push(invalid(`${path}.${field}`, value, `must be less than or equal to ${most}${when}`));
  };
  switch (completionMode) {
    case "Indexed": {
      if (completions === undefined) errors.push(required(`${path}.completions`, "when completion mode is Indexed"));
      atMost("parallelism", MOST_PARALLEL, " when completion mode is Indexed");
      if (maxFailedIndexes !== undefined && completions !== undefined && maxFailedIndexes > completions) {
        errors.push(invalid(`${path}.maxFailedIndexes`, maxFailedIndexes, "must be less than or equal to completions"));
      }
      atMost("maxFailedIndexes", MOST_FAILED_INDEXES, "");
      if ((completions ?? 0) <= MANY_COMPLETIONS || backoffLimitPerIndex === undefined) break;
      const when = ` when completions are above ${MANY_COMPLETIONS} and used with backoff limit per index`;
      if (maxFailedIndexes === undefined) {
        const message = `must be specified when completions is above ${MANY_COMPLETIONS}`;
        errors.push(required(`${path}.maxFailedIndexes`, message));
      }
      if (parallelism > 0) atMost("parallelism", MOST_OF_MANY, when);
      atMost("maxFailedIndexes", MOST_OF_MANY, when);
      break;
    }
    case "NonIndexed":
    case undefined:
      for (const field of ["backoffLimitPerIndex", "maxFailedIndexes"] as const) {
        const value = spec[field];
        if (value !== undefined) errors.push(invalid(`${path}.${field}`, value, "requires indexed completion mode"));
      }
      break;
    default:
      errors.push(notSupported(`${path}.completionMode`, completionMode, ["NonIndexed", "Indexed"]));
  }
  return errors;
}

function replacementErrors({ podReplacementPolicy: policy, podFailurePolicy }: JobSpec, at: string): FieldError[] {
  const supported = podFailurePolicy === undefined ? ["Failed", "TerminatingOrFailed"] : ["Failed"];
  return policy === undefined || supported.includes(policy) ? [] : [notSupported(at, policy, supported)];
}

function restartErrors({ template, podFailurePolicy }: JobSpec, at: string): readonly FieldError[] {
  const policy = template.spec?.restartPolicy ?? "";
  if (policy === "" || policy === "Always") return [required(at, 'valid values: "OnFailure", "Never"')];
  if (policy !== "OnFailure" && policy !== "Never") return [notSupported(at, policy, ["OnFailure", "Never"])];
  if (podFailurePolicy === undefined || policy === "Never") return [];
  return [invalid(at, policy, 'only "Never" is supported when podFailurePolicy is specified')];
}

const FIXED = ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] as const;

/** What is wrong with a change of a job. */
export function jobUpdateErrors({ spec }: Job, old: Job): FieldError[] {
  const errors = [...completionsErrors(spec, old.spec)];
  if (!isDeepStrictEqual(spec.selector, old.spec.selector)) {
    errors.push(invalid("spec.selector", spec.selector, IMMUTABLE));
  }
  if (!isAllowedTemplate(spec.template, old)) errors.push(invalid("spec.template", spec.template, IMMUTABLE));
  for (const field of FIXED) {
    const [value, before] = [spec[field], old.spec[field]];
    if (!isDeepStrictEqual(value, before)) errors.push(invalid(`spec.${field}`, value ?? null, IMMUTABLE));
  }
  return errors;
}

function completionsErrors(spec: JobSpec, old: JobSpec): readonly FieldError[] {
  const { completions, parallelism } = spec;
  if (completions === old.completions) return [];
  if (spec.completionMode !== "Indexed") return [invalid("spec.completions", completions ?? null, IMMUTABLE)];
  if (completions === undefined || completions === parallelism) return [];
  return [invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")];
}

/** A job that is suspended and has no pods may be placed anew, and get other resources. */
function isAllowedTemplate(template: PodTemplateSpec, { spec, status }: Job): boolean {
  if (isDeepStrictEqual(template, spec.template)) return true;
  const isMarked = status?.conditions?.some(({ type, status: is }) => type === "Suspended" && is === "True") === true;
  const isResting = spec.suspend === true && (status?.startTime === undefined || isMarked) && !status?.active;
  return isResting && isDeepStrictEqual(fixedPart(template), fixedPart(spec.template));
}

function fixedPart({ spec }: PodTemplateSpec): object {
  const { nodeSelector: _n, tolerations: _t, schedulingGates: _g, affinity, ...rest }: Partial<PodSpec> = spec ?? {};
  const { nodeAffinity: _a, ...otherAffinity } = affinity ?? {};
  const bare = <C extends object>(all: readonly C[] | undefined) =>
    all?.map((one) => ({ ...one, resources: undefined }));
  const { containers, initContainers, ...more } = rest;
  return { ...more, affinity: otherAffinity, containers: bare(containers), initContainers: bare(initContainers) };
}
