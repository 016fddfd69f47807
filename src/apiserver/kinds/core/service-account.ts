import { SERVICE_ACCOUNTS } from "../../../adapters/kubeapi/index.ts";
import type { ServiceAccount } from "../../../model/generated/types.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { defineKind } from "../kind.ts";

export const serviceAccountKind = defineKind<ServiceAccount>({
  resource: SERVICE_ACCOUNTS,
  shortNames: ["sa"],
  returnsDeleted: true,
  table: tableOf<ServiceAccount>([NAME, AGE]),
});
