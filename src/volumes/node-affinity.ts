import { ownValue } from "../lib/own-value.ts";
import type { NodeSelector, NodeSelectorRequirement } from "../model/generated/types.ts";

type Labels = Readonly<Record<string, string>>;

/** True when a node with these labels is meant: one of the terms holds, and all of its requirements. */
export function matchesNode(selector: NodeSelector | undefined, labels: Labels): boolean {
  if (selector === undefined) return true;
  return selector.nodeSelectorTerms.some(({ matchExpressions = [], matchFields = [] }) => {
    if (matchExpressions.length + matchFields.length === 0) return false;
    return [...matchExpressions, ...matchFields.map(asLabel)].every((requirement) => holds(requirement, labels));
  });
}

/** The only field is the node's name, which is also a label. */
function asLabel(field: NodeSelectorRequirement): NodeSelectorRequirement {
  return field.key === "metadata.name" ? { ...field, key: "kubernetes.io/hostname" } : field;
}

function holds({ key, operator, values = [] }: NodeSelectorRequirement, labels: Labels): boolean {
  const value = ownValue(labels, key);
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return value !== undefined && Number(value) > Number(values[0]);
    case "Lt":
      return value !== undefined && Number(value) < Number(values[0]);
    default:
      return false;
  }
}
