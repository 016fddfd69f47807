/** What decides about the label that a volume is mounted with. */
export interface MountLabelFacts {
  /** The labels that the pod's containers want; undefined for one that nobody knows. */
  readonly labels: ReadonlySet<string | undefined>;
  /** Undefined for a volume that is not behind a claim. */
  readonly accessModes: readonly string[] | undefined;
  /** The CSIDriver allows `mount -o context`. */
  readonly isSupported: boolean;
  /** The gate for all access modes, not only ReadWriteOncePod. */
  readonly isForAllModes: boolean;
  /** `seLinuxChangePolicy` of the pod. */
  readonly changePolicy: string | undefined;
}

export type MountLabel =
  /** The whole volume is mounted with the label; nobody has to change its files. */
  | { readonly kind: "label"; readonly label: string }
  /** It would be, if the gate were for its access modes. */
  | { readonly kind: "later"; readonly label: string }
  | { readonly kind: "none" }
  /** The containers of the pod want different labels; `isError`: and the volume can have only one. */
  | { readonly kind: "conflict"; readonly labels: readonly string[]; readonly isError: boolean };

/** Decides as Kubernetes does; a label of which a part is not known counts as none. Pure. */
export function decideMountLabel(facts: MountLabelFacts): MountLabel {
  const { labels, isSupported, changePolicy } = facts;
  const known = [...labels].filter((label) => label !== undefined);
  if (labels.size > 1 && known.length > 0) {
    const shown = [...labels].map((label) => label ?? "").sort();
    return { kind: "conflict", labels: shown, isError: isEligible(facts) };
  }
  const [label] = known;
  if (label === undefined || !isSupported || changePolicy === "Recursive") return { kind: "none" };
  return { kind: isEligible(facts) ? "label" : "later", label };
}

/** True if volumes of these access modes are mounted with a label at all. */
function isEligible({ accessModes, isForAllModes }: MountLabelFacts): boolean {
  if (accessModes === undefined) return false;
  return isForAllModes || (accessModes.length === 1 && accessModes[0] === "ReadWriteOncePod");
}

/**
 * True if a label can be quoted. Its author chose it, and libmount ends quotes at a quotation mark, escaped or not: what
 * follows would be mount options of their own.
 */
export function isQuotable(label: string): boolean {
  return !/["\\\p{Cc}]/u.test(label);
}

/** The mount option; quoted, because a level has commas. */
export function contextOption(label: string): string {
  return `context=${JSON.stringify(label)}`;
}

/** The access mode under which metrics count a volume: the widest that it has. */
export function accessModeLabel(accessModes: readonly string[] | undefined): string {
  if (accessModes === undefined) return "inline";
  const names: readonly (readonly [string, string])[] = [
    ["ReadWriteMany", "RWX"],
    ["ReadOnlyMany", "ROX"],
    ["ReadWriteOnce", "RWO"],
    ["ReadWriteOncePod", "RWOP"],
  ];
  return names.find(([mode]) => accessModes.includes(mode))?.[1] ?? "";
}
