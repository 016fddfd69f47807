import type { NamespaceCondition } from "../../model/generated/types.ts";
import type { GraphNode } from "./object-graph.ts";

/** Conditions of a namespace whose content is not gone yet, as Kubernetes words them. The same array if nothing is new. */
export function withRemainingContent(
  known: readonly NamespaceCondition[],
  left: readonly GraphNode[],
  now: string,
): readonly NamespaceCondition[] {
  const wanted: readonly Omit<NamespaceCondition, "lastTransitionTime">[] = [
    {
      type: "NamespaceDeletionDiscoveryFailure",
      status: "False",
      reason: "ResourcesDiscovered",
      message: "All resources successfully discovered",
    },
    {
      type: "NamespaceDeletionGroupVersionParsingFailure",
      status: "False",
      reason: "ParsedGroupVersions",
      message: "All legacy kube types successfully parsed",
    },
    {
      type: "NamespaceDeletionContentFailure",
      status: "False",
      reason: "ContentDeleted",
      message: "All content successfully deleted, may be waiting on finalization",
    },
    {
      type: "NamespaceContentRemaining",
      status: "True",
      reason: "SomeResourcesRemain",
      message: `Some resources are remaining: ${countsText(left, ({ resource: { group, plural } }) => [`${plural}.${group}`], "has")}`,
    },
    finalizersCondition(left),
  ];
  let isChanged = false;
  const next = wanted.map((condition): NamespaceCondition => {
    const old = known.find(({ type }) => type === condition.type);
    if (old?.status === condition.status && old.reason === condition.reason && old.message === condition.message) {
      return old;
    }
    isChanged = true;
    const { lastTransitionTime = now } = old?.status === condition.status ? old : {};
    return { ...condition, lastTransitionTime };
  });
  const others = known.filter(({ type }) => !wanted.some((condition) => condition.type === type));
  return isChanged ? [...others, ...next] : known;
}

function finalizersCondition(left: readonly GraphNode[]): Omit<NamespaceCondition, "lastTransitionTime"> {
  const type = "NamespaceFinalizersRemaining";
  const text = countsText(left, ({ metadata }) => metadata.finalizers ?? [], "in");
  return text === ""
    ? {
        type,
        status: "False",
        reason: "ContentHasNoFinalizers",
        message: "All content-preserving finalizers finished",
      }
    : {
        type,
        status: "True",
        reason: "SomeFinalizersRemain",
        message: `Some content in the namespace has finalizers remaining: ${text}`,
      };
}

function countsText(
  nodes: readonly GraphNode[],
  wordsOf: (node: GraphNode) => readonly string[],
  verb: string,
): string {
  const counts = new Map<string, number>();
  for (const word of nodes.flatMap(wordsOf)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([word, count]) => `${word} ${verb} ${count} resource instances`)
    .join(", ");
}
