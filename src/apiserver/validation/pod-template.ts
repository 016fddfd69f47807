import type { Pod, PodTemplateSpec } from "../../model/generated/types.ts";
import type { FieldProblem } from "../../model/problem.ts";
import { validatePod } from "../../model/validate-pod.ts";
import type { FieldError, FieldErrorType } from "../status/field-error.ts";

/** What is wrong with a pod, beside its metadata. */
export function podErrors(pod: Pod): readonly FieldError[] {
  return validatePod(pod)
    .filter(({ path }) => !path.startsWith("metadata."))
    .map(toFieldError);
}

/** What is wrong with the template of pods at a path. */
export function templateErrors({ metadata, spec }: PodTemplateSpec, path: string): readonly FieldError[] {
  if (spec === undefined) return [{ type: "FieldValueRequired", field: `${path}.spec`, body: "Required value" }];
  // A template has no name of its own.
  const pod = { metadata: { ...metadata, name: "template", namespace: "default" }, spec };
  return validatePod(pod).map((problem) => toFieldError({ ...problem, path: `${path}.${problem.path}` }));
}

/** A problem of a static pod in the form of the API. */
function toFieldError({ path, value, message, fix }: FieldProblem): FieldError {
  if (message === "is required") return { type: "FieldValueRequired", field: path, body: "Required value" };
  const [type, word] = kindOf(message);
  const detail = fix === "" ? message : `${message}; ${fix}`;
  const shown = value === "" ? word : `${word}: ${value}`;
  return { type, field: path, body: type === "FieldValueDuplicate" ? shown : `${shown}: ${detail}` };
}

function kindOf(message: string): readonly [FieldErrorType, string] {
  if (message === "is not a supported value") return ["FieldValueNotSupported", "Unsupported value"];
  if (message === "is used twice") return ["FieldValueDuplicate", "Duplicate value"];
  return ["FieldValueInvalid", "Invalid value"];
}
