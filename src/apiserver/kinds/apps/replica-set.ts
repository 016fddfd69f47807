import { REPLICA_SETS } from "../../../adapters/kubeapi/index.ts";
import type { ReplicaSet } from "../../../model/generated/types.ts";
import { AGE, containerColumns, NAME, selectorColumn, tableOf } from "../../tables/columns.ts";
import { nonNegative } from "../../validation/numbers.ts";
import { defineKind } from "../kind.ts";
import { defaultTemplate, replicaScale, selectorChange, workloadErrors } from "./template.ts";

export const replicaSetKind = defineKind<ReplicaSet>({
  resource: REPLICA_SETS,
  shortNames: ["rs"],
  categories: ["all"],
  hasGeneration: true,
  defaults: (set) => ({
    ...set,
    spec: {
      ...set.spec,
      replicas: set.spec.replicas ?? 1,
      ...(set.spec.template && { template: defaultTemplate(set.spec.template) }),
    },
  }),
  validate: ({ spec }) => [
    ...nonNegative(spec.replicas, "spec.replicas"),
    ...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"),
    ...workloadErrors({ selector: spec.selector, template: spec.template ?? {} }, "replicaset"),
  ],
  validateUpdate: (next, old) => selectorChange(next.spec.selector, old.spec.selector),
  selectableFields: ({ status }) => ({ "status.replicas": String(status?.replicas ?? 0) }),
  status: {},
  scale: replicaScale<ReplicaSet>(),
  table: tableOf<ReplicaSet>([
    NAME,
    { name: "Desired", type: "integer", cell: ({ spec }) => spec.replicas ?? 0 },
    { name: "Current", type: "integer", cell: ({ status }) => status?.replicas ?? 0 },
    { name: "Ready", type: "integer", cell: ({ status }) => status?.readyReplicas ?? 0 },
    AGE,
    ...containerColumns<ReplicaSet>(({ spec }) => spec.template?.spec?.containers ?? []),
    selectorColumn<ReplicaSet>(({ spec }) => spec.selector),
  ]),
});
