import { ownValue } from "../../lib/own-value.ts";
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PersistentVolume,
  VolumeNodeAffinity,
} from "../../model/generated/types.ts";

/** Labels of nodes by which in-tree kinds bound volumes to a zone: of now, and of before. */
const CURRENT = { zone: "topology.kubernetes.io/zone", region: "topology.kubernetes.io/region" };
const FORMER = { zone: "failure-domain.beta.kubernetes.io/zone", region: "failure-domain.beta.kubernetes.io/region" };
/** Several zones in a label of a PersistentVolume are separated by this. */
const ZONE_SEPARATOR = "__";

/** The labels that a CSI driver gives its nodes. */
export interface DriverLabels {
  readonly zone: string;
  /** Undefined if the driver does not know regions. */
  readonly region?: string;
}

/**
 * Returns where a volume of an in-tree kind can be used, by the labels of the driver that has taken over: new nodes may
 * have no others. What its affinity does not say the labels of the volume do, as in Kubernetes. Pure.
 */
export function translateAffinity(
  { spec, metadata }: Pick<PersistentVolume, "spec" | "metadata">,
  driver: DriverLabels,
): VolumeNodeAffinity | undefined {
  const { labels = {} } = metadata;
  const before = spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const from = namesOf(before, labels);
  const zones = (ownValue(labels, from.zone) ?? "").split(ZONE_SEPARATOR);
  const byZone = translated(before, { from: from.zone, to: driver.zone, known: zones });
  const terms =
    driver.region === undefined
      ? renamed(byZone, from.region, CURRENT.region)
      : translated(byZone, { from: from.region, to: driver.region, known: [ownValue(labels, from.region) ?? ""] });
  return terms.length === 0 ? spec.nodeAffinity : { required: { nodeSelectorTerms: terms } };
}

/** The names that the volume uses; its affinity counts before its labels. */
function namesOf(terms: readonly NodeSelectorTerm[], labels: Readonly<Record<string, string>>): typeof CURRENT {
  if (isNamed(terms, CURRENT.zone)) return CURRENT;
  if (isNamed(terms, FORMER.zone)) return FORMER;
  const isLabelled = (name: string): boolean => ownValue(labels, name) !== undefined;
  return !isLabelled(CURRENT.zone) && isLabelled(FORMER.zone) ? FORMER : CURRENT;
}

/** With a label by its new name, or with what is known of it where the terms do not name it. */
function translated(
  terms: readonly NodeSelectorTerm[],
  { from, to, known }: { readonly from: string; readonly to: string; readonly known: readonly string[] },
): readonly NodeSelectorTerm[] {
  if (isNamed(terms, from)) return renamed(terms, from, to);
  const values = [...new Set(known.map((value) => value.trim()))].filter((value) => value !== "").sort();
  if (values.length === 0) return terms;
  const added: NodeSelectorRequirement = { key: to, operator: "In", values };
  return (terms.length === 0 ? [{}] : terms).map((term: NodeSelectorTerm) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? []), added],
  }));
}

function renamed(terms: readonly NodeSelectorTerm[], from: string, to: string): readonly NodeSelectorTerm[] {
  return terms.map((term) => ({
    ...term,
    ...(term.matchExpressions && {
      matchExpressions: term.matchExpressions.map((one) => (one.key === from ? { ...one, key: to } : one)),
    }),
  }));
}

function isNamed(terms: readonly NodeSelectorTerm[], key: string): boolean {
  return terms.some(({ matchExpressions = [] }) =>
    matchExpressions.some((one) => one.key === key && (one.values ?? []).length > 0),
  );
}
