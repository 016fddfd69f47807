import type {
  JobSpec,
  PodFailurePolicyOnExitCodesRequirement,
  PodFailurePolicyRule,
  SuccessPolicyRule,
} from "../../../model/generated/types.ts";
import {
  duplicate,
  type FieldError,
  invalid,
  invalidField,
  notSupported,
  required,
  tooLong,
  tooMany,
} from "../../status/field-error.ts";
import { labelKeyProblems } from "../../validation/formats.ts";
import { nonNegative } from "../../validation/numbers.ts";
import { checkIndexes } from "./job-indexes.ts";

const ACTIONS = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS = ["In", "NotIn"];
const STATUSES = ["False", "True", "Unknown"];
const MOST_RULES = 20;
const MOST_EXIT_CODES = 255;
const MOST_PATTERNS = 20;
const MOST_INDEX_BYTES = 64 * 1024;

/** What is wrong with the failure policy of a job, if it has one. */
export function failurePolicyErrors(spec: JobSpec, path: string): readonly FieldError[] {
  const rules = spec.podFailurePolicy?.rules ?? [];
  const at = `${path}.podFailurePolicy.rules`;
  const pod = spec.template.spec;
  const containers = [...(pod?.containers ?? []), ...(pod?.initContainers ?? [])].map(({ name }) => name);
  return [
    ...(rules.length > MOST_RULES ? [tooMany(at, rules.length, MOST_RULES)] : []),
    ...rules.flatMap((rule, index) => ruleErrors(rule, `${at}[${index}]`, { spec, containers })),
  ];
}

interface RuleContext {
  readonly spec: JobSpec;
  readonly containers: readonly string[];
}

function ruleErrors(rule: PodFailurePolicyRule, at: string, { spec, containers }: RuleContext): readonly FieldError[] {
  const errors = wordErrors(rule.action, `${at}.action`, ACTIONS);
  if (rule.action === "FailIndex" && spec.backoffLimitPerIndex === undefined) {
    errors.push(invalid(`${at}.action`, rule.action, "requires the backoffLimitPerIndex to be set"));
  }
  const { onExitCodes, onPodConditions = [] } = rule;
  if (onExitCodes !== undefined) errors.push(...exitCodeErrors(onExitCodes, `${at}.onExitCodes`, containers));
  const patterns = `${at}.onPodConditions`;
  if (onPodConditions.length > MOST_PATTERNS) errors.push(tooMany(patterns, onPodConditions.length, MOST_PATTERNS));
  for (const [index, { type, status }] of onPodConditions.entries()) {
    errors.push(...labelKeyProblems(type).map((message) => invalid(`${patterns}[${index}].type`, type, message)));
    errors.push(...wordErrors(status, `${patterns}[${index}].status`, STATUSES));
  }
  const isByCode = onExitCodes !== undefined;
  const isByCondition = onPodConditions.length > 0;
  if (isByCode && isByCondition) {
    errors.push(invalidField(at, "specifying both OnExitCodes and OnPodConditions is not supported"));
  }
  if (!isByCode && !isByCondition) {
    errors.push(invalidField(at, "specifying one of OnExitCodes and OnPodConditions is required"));
  }
  return errors;
}

function exitCodeErrors(
  { operator, containerName, values }: PodFailurePolicyOnExitCodesRequirement,
  at: string,
  containers: readonly string[],
): readonly FieldError[] {
  const errors = wordErrors(operator, `${at}.operator`, OPERATORS);
  if (containerName !== undefined && !containers.includes(containerName)) {
    const message = "must be one of the container or initContainer names in the pod template";
    errors.push(invalid(`${at}.containerName`, containerName, message));
  }
  if (values.length === 0) errors.push(invalid(`${at}.values`, values, "at least one value is required"));
  if (values.length > MOST_EXIT_CODES) errors.push(tooMany(`${at}.values`, values.length, MOST_EXIT_CODES));
  for (const [index, value] of values.entries()) {
    const place = `${at}.values[${index}]`;
    if (operator === "In" && value === 0) errors.push(invalid(place, value, "must not be 0 for the In operator"));
    if (values.indexOf(value) !== index) errors.push(duplicate(place, value));
  }
  const isOrdered = values.every((value, index) => (values[index - 1] ?? value) <= value);
  return isOrdered ? errors : [...errors, invalid(`${at}.values`, values, "must be ordered")];
}

/** A word that must be there and one of a few. */
function wordErrors(word: string | undefined, at: string, words: readonly string[]): FieldError[] {
  if (!word) return [required(at, `valid values: [${words.map((one) => JSON.stringify(one)).join(" ")}]`)];
  return words.includes(word) ? [] : [notSupported(at, word, words)];
}

/** What is wrong with the success policy of a job, if it has one. */
export function successPolicyErrors(spec: JobSpec, path: string): readonly FieldError[] {
  const { successPolicy, completions = 0 } = spec;
  if (successPolicy === undefined) return [];
  const at = `${path}.successPolicy`;
  if (spec.completionMode !== "Indexed") return [invalid(at, successPolicy, "requires indexed completion mode")];
  const rules = successPolicy.rules ?? [];
  const errors = rules.flatMap((rule, index) => successRuleErrors(rule, `${at}.rules[${index}]`, completions));
  const message = "at least one rules must be specified when the successPolicy is specified";
  if (rules.length === 0) return [required(`${at}.rules`, message)];
  return rules.length > MOST_RULES ? [tooMany(`${at}.rules`, rules.length, MOST_RULES), ...errors] : errors;
}

function successRuleErrors(
  { succeededCount, succeededIndexes }: SuccessPolicyRule,
  at: string,
  completions: number,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (succeededCount === undefined && succeededIndexes === undefined) {
    errors.push(required(at, "at least one of succeededCount or succeededIndexes must be specified"));
  }
  const indexes = checkIndexes(succeededIndexes ?? "", completions);
  if (succeededIndexes !== undefined) {
    const place = `${at}.succeededIndexes`;
    if (succeededIndexes.length > MOST_INDEX_BYTES) errors.push(tooLong(place, MOST_INDEX_BYTES));
    if (indexes.problem !== undefined) {
      errors.push(invalid(place, succeededIndexes, `error parsing succeededIndexes: ${indexes.problem}`));
    }
  }
  if (succeededCount !== undefined) {
    const place = `${at}.succeededCount`;
    errors.push(...nonNegative(succeededCount, place));
    const limit = (most: number, what: string): void => {
      if (succeededCount <= most) return;
      errors.push(invalid(place, succeededCount, `must be less than or equal to ${most} (the number of ${what})`));
    };
    limit(completions, "specified completions");
    if (succeededIndexes !== undefined) limit(indexes.count, "indexes in the specified succeededIndexes field");
  }
  return errors;
}
