import { RUNTIME_CLASSES } from "../../../adapters/kubeapi/index.ts";
import type { RuntimeClass } from "../../../model/generated/types.ts";
import { IMMUTABLE, invalid } from "../../status/field-error.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { labelProblems } from "../../validation/formats.ts";
import { defineKind } from "../kind.ts";

export const runtimeClassKind = defineKind<RuntimeClass>({
  resource: RUNTIME_CLASSES,
  createsOnUpdate: true,
  needsVersion: true,
  validate: ({ handler }) => labelProblems(handler).map((message) => invalid("handler", handler, message)),
  validateUpdate: (next, old) => (next.handler === old.handler ? [] : [invalid("handler", next.handler, IMMUTABLE)]),
  table: tableOf<RuntimeClass>([NAME, { name: "Handler", cell: ({ handler }) => handler }, AGE]),
});
