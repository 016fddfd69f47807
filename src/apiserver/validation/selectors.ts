import type { LabelSelector } from "../../model/generated/types.ts";
import { type FieldError, forbidden, invalid, notSupported, required } from "../status/field-error.ts";
import { labelKeyProblems, labelValueProblems } from "./formats.ts";

const OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist"];

/** What is wrong with a selector at a path. */
export function selectorErrors({ matchLabels = {}, matchExpressions = [] }: LabelSelector, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(matchLabels)) {
    errors.push(...labelKeyProblems(key).map((message) => invalid(`${path}.matchLabels`, key, message)));
    errors.push(...labelValueProblems(value).map((message) => invalid(`${path}.matchLabels`, value, message)));
  }
  for (const [index, { key, operator, values = [] }] of matchExpressions.entries()) {
    const at = `${path}.matchExpressions[${index}]`;
    if (!OPERATORS.includes(operator)) errors.push(notSupported(`${at}.operator`, operator, OPERATORS));
    else if ((operator === "In" || operator === "NotIn") && values.length === 0) {
      errors.push(required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if (operator.endsWith("Exist") || operator === "Exists") {
      if (values.length > 0) {
        errors.push(forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
      }
    }
    errors.push(...labelKeyProblems(key).map((message) => invalid(`${at}.key`, key, message)));
  }
  return errors;
}

/** What is wrong with a selector that must mean the pods of a template. */
export function ownedSelectorErrors(
  selector: LabelSelector | undefined,
  {
    labels,
    matches,
    kind,
  }: {
    readonly labels: Readonly<Record<string, string>> | undefined;
    readonly matches: (selector: LabelSelector, labels: Readonly<Record<string, string>>) => boolean;
    readonly kind: string;
  },
): FieldError[] {
  const mismatch = invalid(
    "spec.template.metadata.labels",
    labels ?? null,
    "`selector` does not match template `labels`",
  );
  if (selector === undefined) return [required("spec.selector"), mismatch];
  const errors = selectorErrors(selector, "spec.selector");
  const isEmpty = Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length === 0;
  if (isEmpty) errors.push(invalid("spec.selector", selector, `empty selector is invalid for ${kind}`));
  else if (errors.length === 0 && !matches(selector, labels ?? {})) errors.push(mismatch);
  return errors;
}
