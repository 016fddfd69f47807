import { isDeepStrictEqual } from "node:util";
import { CONTROLLER_REVISIONS } from "../../../adapters/kubeapi/index.ts";
import type { ControllerRevision } from "../../../model/generated/types.ts";
import { IMMUTABLE, invalid } from "../../status/field-error.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { nonNegative } from "../../validation/numbers.ts";
import { defineKind } from "../kind.ts";

export const controllerRevisionKind = defineKind<ControllerRevision>({
  resource: CONTROLLER_REVISIONS,
  validate: ({ revision }) => nonNegative(revision, "revision"),
  validateUpdate: (next, old) =>
    isDeepStrictEqual(next.data, old.data) ? [] : [invalid("data", next.data, IMMUTABLE)],
  table: tableOf<ControllerRevision>([
    NAME,
    { name: "Controller", cell: controllerText },
    { name: "Revision", cell: ({ revision }) => revision },
    AGE,
  ]),
});

function controllerText({ metadata }: ControllerRevision): string {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined) return "<none>";
  const group = owner.apiVersion.includes("/") ? `.${owner.apiVersion.split("/")[0]}` : "";
  return `${owner.kind.toLowerCase()}${group}/${owner.name}`;
}
