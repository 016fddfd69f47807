import { schemas } from "./generated/schema.ts";
import type { Pod } from "./generated/types.ts";
import { type Rule, supportRules } from "./pod-support-rules.ts";

/** Fields of a pod that the agent does not act on, each as `path: what that means`. */
export interface UnsupportedFields {
  /** Running the pod without these would be wrong or unsafe: it must not start. */
  readonly refused: readonly string[];
  /** The pod runs, but these do nothing. */
  readonly warned: readonly string[];
}

/** Compares a pod with the table of what this agent does. */
export function unsupportedFields(pod: Pod): UnsupportedFields {
  const found = { refused: [] as string[], warned: [] as string[] };
  visit("PodSpec", { path: "spec", value: pod.spec }, found);
  return found;
}

interface Place {
  readonly path: string;
  readonly value: object;
}

function visit(type: string, place: Place, found: { refused: string[]; warned: string[] }): void {
  const rules = supportRules[type];
  const schema = schemas[type];
  if (rules === undefined || schema === undefined) return;
  for (const [name, value] of Object.entries(place.value)) {
    const path = `${place.path}.${name}`;
    const rule = ruleFor(rules, name);
    if (!isSet(value) || (rule.when !== undefined && !rule.when(value))) continue;
    if (rule.kind === "refuse") found.refused.push(`${path}: ${rule.why}`);
    else if (rule.kind === "warn") found.warned.push(`${path}: ${rule.why}`);
    else {
      const field = schema[name];
      for (const [at, inner] of elements(path, value)) visit(field?.type ?? "", { path: at, value: inner }, found);
    }
  }
}

function ruleFor(rules: Readonly<Record<string, Rule>>, name: string): Rule {
  const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
  return rule ?? { kind: "warn", why: "is not acted on yet" };
}

/** Absent, empty and false values request nothing. A rule with a `when` checks `false` itself. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
}

function elements(path: string, value: unknown): [string, object][] {
  if (Array.isArray(value)) {
    return value.flatMap((inner: unknown, index): [string, object][] =>
      typeof inner === "object" && inner !== null ? [[`${path}[${index}]`, inner]] : [],
    );
  }
  return typeof value === "object" && value !== null ? [[path, value]] : [];
}
