import { PRIORITY_CLASSES } from "../../../adapters/kubeapi/index.ts";
import type { PriorityClass } from "../../../model/generated/types.ts";
import { SYSTEM_CLUSTER_CRITICAL, SYSTEM_NODE_CRITICAL } from "../../../model/labels.ts";
import { type FieldError, forbidden, invalid, notSupported } from "../../status/field-error.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { defineKind } from "../kind.ts";

const HIGHEST = 1_000_000_000;
const SYSTEM_PREFIX = "system-";
const POLICIES = ["PreemptLowerPriority", "Never"];

export const priorityClassKind = defineKind<PriorityClass>({
  resource: PRIORITY_CLASSES,
  shortNames: ["pc"],
  hasGeneration: true,
  defaults: (one) => ({ ...one, preemptionPolicy: one.preemptionPolicy ?? "PreemptLowerPriority" }),
  validate: ({ metadata, value = 0, preemptionPolicy = "" }) => {
    const errors: FieldError[] = [];
    const name = metadata.name ?? "";
    const isKnown = name === SYSTEM_NODE_CRITICAL || name === SYSTEM_CLUSTER_CRITICAL;
    if (name.startsWith(SYSTEM_PREFIX) && !isKnown) {
      const message = `priority class names with '${SYSTEM_PREFIX}' prefix are reserved for system use only. error: ${name} is not a known system priority class`;
      errors.push(forbidden("metadata.name", message));
    } else if (!isKnown && value > HIGHEST) {
      errors.push(forbidden("value", `maximum allowed value of a user defined priority is ${HIGHEST}`));
    }
    if (!POLICIES.includes(preemptionPolicy)) errors.push(notSupported("preemptionPolicy", preemptionPolicy, POLICIES));
    return errors;
  },
  validateUpdate: (next, old) => {
    const errors: FieldError[] = [];
    if (next.value !== old.value) errors.push(forbidden("value", "may not be changed in an update."));
    if (next.preemptionPolicy !== old.preemptionPolicy) {
      errors.push(invalid("preemptionPolicy", next.preemptionPolicy, "field is immutable"));
    }
    return errors;
  },
  table: tableOf<PriorityClass>([
    NAME,
    { name: "Value", type: "integer", cell: ({ value = 0 }) => value },
    { name: "Global-Default", type: "boolean", cell: ({ globalDefault = false }) => globalDefault },
    AGE,
    { name: "PreemptionPolicy", cell: ({ preemptionPolicy = "" }) => preemptionPolicy },
  ]),
});
