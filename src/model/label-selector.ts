import { ownValue } from "../lib/own-value.ts";
import type { LabelSelector } from "./generated/types.ts";
import { matchesRequirement, requirementMatcher } from "./node-selector.ts";

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

/** Returns `matchesLabels` for many objects: each costs the same, however many values the expressions list. */
export function labelMatcher(selector: LabelSelector | undefined): (labels: Labels | undefined) => boolean {
  const matchers = selector?.matchExpressions?.map(requirementMatcher) ?? [];
  const rest = selector && { ...selector, matchExpressions: [] };
  return (labels = {}) => matchesLabels(rest, labels) && matchers.every((matches) => matches(labels));
}
