import { ownValue } from "../lib/own-value.ts";
import type { NodeSelector, NodeSelectorRequirement, NodeSelectorTerm } from "./generated/types.ts";

/** What a node is selected by. */
export interface SelectedNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** True if one of the terms matches the node; no term matches nothing. Pure. */
export function matchesNodeSelector({ nodeSelectorTerms }: NodeSelector, node: SelectedNode): boolean {
  return nodeSelectorTerms.some((term) => matchesTerm(term, node));
}

/** True if all requirements of a term hold; an empty term matches nothing. */
function matchesTerm(term: NodeSelectorTerm, { name, labels }: SelectedNode): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((one) => matchesRequirement(one, labels)) &&
    matchFields.every((one) => matchesRequirement(one, { "metadata.name": name }))
  );
}

/** True if a requirement of a node selector or of a label selector, which has fewer operators, holds for labels. Pure. */
export function matchesRequirement(requirement: NodeSelectorRequirement, labels: SelectedNode["labels"]): boolean {
  const { values = [] } = requirement;
  return holds(requirement, { labels, isListed: (value) => values.includes(value) });
}

/** Returns `matchesRequirement` for many objects: each costs the same, however many values the requirement lists. */
export function requirementMatcher(requirement: NodeSelectorRequirement): (labels: SelectedNode["labels"]) => boolean {
  const values = new Set(requirement.values);
  const isListed = (value: string): boolean => values.has(value);
  return (labels) => holds(requirement, { labels, isListed });
}

function holds(
  { key, operator, values = [] }: NodeSelectorRequirement,
  { labels, isListed }: { readonly labels: SelectedNode["labels"]; readonly isListed: (value: string) => boolean },
): boolean {
  const value = ownValue(labels, key);
  switch (operator) {
    case "In":
      return value !== undefined && isListed(value);
    case "NotIn":
      return value === undefined || !isListed(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
    case "Lt":
      return value !== undefined && compares(operator, value, values[0] ?? "");
    default:
      return false;
  }
}

/** Only whole numbers compare, as in Kubernetes. */
function compares(operator: "Gt" | "Lt", value: string, limit: string): boolean {
  const isWhole = (text: string): boolean => /^[+-]?\d+$/.test(text);
  if (!isWhole(value) || !isWhole(limit)) return false;
  return operator === "Gt" ? BigInt(value) > BigInt(limit) : BigInt(value) < BigInt(limit);
}
