import { type FieldError, invalid, required } from "../status/field-error.ts";
import { label1035Problems, labelProblems, pathProblems, subdomainProblems } from "../validation/formats.ts";

/** Which names objects of a kind may have. */
export type NameRule = "subdomain" | "label" | "service" | "cronJob" | "path";

const RULES: Readonly<Record<NameRule, (text: string) => string[]>> = {
  subdomain: (text) => subdomainProblems(text),
  label: labelProblems,
  service: label1035Problems,
  cronJob: (text) => subdomainProblems(text),
  path: pathProblems,
};

/** A CronJob's jobs get a suffix of eleven characters, and must fit a label. */
const LONGEST_CRON_JOB = 52;

/** What is wrong with a name or prefix, in the words of Kubernetes. A prefix may end with a dash. */
export function nameProblems(rule: NameRule, name: string, isPrefix = false): readonly string[] {
  return RULES[rule](isPrefix && name.endsWith("-") ? `${name.slice(0, -1)}a` : name);
}

/** What is wrong with the name of an object that is about to be created. */
export function checkName(
  rule: NameRule,
  { name = "", generateName = "" }: { readonly name?: string; readonly generateName?: string },
): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (generateName !== "") {
    for (const message of nameProblems(rule, generateName, true)) {
      errors.push(invalid("metadata.generateName", generateName, message));
    }
  }
  if (name === "") return [...errors, required("metadata.name", "name or generateName is required")];
  for (const message of nameProblems(rule, name)) errors.push(invalid("metadata.name", name, message));
  if (rule === "cronJob" && name.length > LONGEST_CRON_JOB) {
    errors.push(invalid("metadata.name", name, `must be no more than ${LONGEST_CRON_JOB} characters`));
  }
  return errors;
}
