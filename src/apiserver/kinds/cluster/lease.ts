import { LEASES } from "../../../adapters/kubeapi/index.ts";
import type { Lease } from "../../../model/generated/types.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { nonNegative, positive } from "../../validation/numbers.ts";
import { defineKind } from "../kind.ts";

export const leaseKind = defineKind<Lease>({
  resource: LEASES,
  createsOnUpdate: true,
  needsVersion: true,
  validate: ({ spec }) => [
    ...positive(spec?.leaseDurationSeconds, "spec.leaseDurationSeconds"),
    ...nonNegative(spec?.leaseTransitions, "spec.leaseTransitions"),
  ],
  table: tableOf<Lease>([NAME, { name: "Holder", cell: ({ spec }) => spec?.holderIdentity ?? "" }, AGE]),
});
