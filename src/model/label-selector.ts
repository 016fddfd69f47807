import { ownValue } from "../lib/own-value.ts";
import type { LabelSelector } from "./generated/types.ts";
import { matchesRequirement } from "./node-selector.ts";

type Labels = Readonly<Record<string, string>>;

/** Whether an object with these labels is meant. No selector means nothing, an empty one everything, as in the API. */
export function matchesLabels(selector: LabelSelector | undefined, labels: Labels = {}): boolean {
  if (selector === undefined) return false;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => ownValue(labels, key) === value) &&
    matchExpressions.every((requirement) => matchesRequirement(requirement, labels))
  );
}
