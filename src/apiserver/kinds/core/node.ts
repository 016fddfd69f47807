import { NODES } from "../../../adapters/kubeapi/index.ts";
import { ownValue } from "../../../lib/own-value.ts";
import type { Node } from "../../../model/generated/types.ts";
import { type FieldError, forbidden, invalid } from "../../status/field-error.ts";
import { AGE, type ColumnCells, NAME, tableOf } from "../../tables/columns.ts";
import { defineKind } from "../kind.ts";

const ROLE_PREFIX = "node-role.kubernetes.io/";
const ROLE_LABEL = "kubernetes.io/role";
const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

export const nodeKind = defineKind<Node>({
  resource: NODES,
  shortNames: ["no"],
  createsWithStatus: true,
  defaults: (node) => {
    const { capacity, allocatable } = node.status ?? {};
    return capacity && !allocatable ? { ...node, status: { ...node.status, allocatable: capacity } } : node;
  },
  validate: ({ spec }) =>
    (spec?.taints ?? []).flatMap(({ key, effect }, index): FieldError[] => {
      const path = `metadata.taints[${index}]`;
      const errors: FieldError[] = key === "" ? [invalid(`${path}.key`, key, "name part must be non-empty")] : [];
      return EFFECTS.includes(effect) ? errors : [...errors, invalid(`${path}.effect`, effect, "invalid taint effect")];
    }),
  validateUpdate: (next, old) => {
    const was = old.spec?.podCIDR ?? "";
    const isChanged = was !== "" && was !== (next.spec?.podCIDR ?? "");
    return isChanged ? [forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')] : [];
  },
  selectableFields: ({ spec }) => ({ "spec.unschedulable": String(spec?.unschedulable ?? false) }),
  status: {},
  table: tableOf<Node>([
    NAME,
    { name: "Status", cell: statusText },
    { name: "Roles", cell: (node) => rolesOf(node).join(",") || "<none>" },
    AGE,
    { name: "Version", cell: ({ status }) => status?.nodeInfo?.kubeletVersion ?? "" },
    addressColumn("Internal-IP", "InternalIP"),
    addressColumn("External-IP", "ExternalIP"),
    { name: "OS-Image", isWide: true, cell: ({ status }) => status?.nodeInfo?.osImage || "<unknown>" },
    {
      name: "Kernel-Version",
      isWide: true,
      cell: ({ status }) => {
        const { kernelVersion, architecture } = status?.nodeInfo ?? {};
        return `${kernelVersion || "<unknown>"}${architecture ? ` (${architecture})` : ""}`;
      },
    },
    {
      name: "Container-Runtime",
      isWide: true,
      cell: ({ status }) => status?.nodeInfo?.containerRuntimeVersion || "<unknown>",
    },
  ]),
});

function statusText({ status, spec }: Node): string {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const word = ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady";
  return spec?.unschedulable ? `${word},SchedulingDisabled` : word;
}

function rolesOf({ metadata }: Node): readonly string[] {
  const labels = metadata.labels ?? {};
  const roles = Object.keys(labels)
    .filter((key) => key.startsWith(ROLE_PREFIX))
    .map((key) => key.slice(ROLE_PREFIX.length));
  return [...new Set([...roles, ownValue(labels, ROLE_LABEL) ?? ""])].filter((role) => role !== "").sort();
}

function addressColumn(name: string, type: string): ColumnCells<Node> {
  return {
    name,
    isWide: true,
    cell: ({ status }) => status?.addresses?.find((address) => address.type === type)?.address ?? "<none>",
  };
}
