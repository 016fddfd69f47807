import { isDeepStrictEqual } from "node:util";
import { CONFIG_MAPS } from "../../../adapters/kubeapi/index.ts";
import type { ConfigMap } from "../../../model/generated/types.ts";
import { type FieldError, forbidden, invalid, tooLong } from "../../status/field-error.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { configKeyProblems } from "../../validation/formats.ts";
import { defineKind } from "../kind.ts";

/** All values of a ConfigMap or Secret together, in bytes. */
export const MOST_DATA_BYTES = 1024 * 1024;

/** The message about a change of an immutable object. */
export const SEALED = "field is immutable when `immutable` is set";

export const configMapKind = defineKind<ConfigMap>({
  resource: CONFIG_MAPS,
  shortNames: ["cm"],
  validate: ({ data = {}, binaryData = {} }) => [
    ...keyErrors("data", data),
    ...keyErrors("binaryData", binaryData),
    ...Object.keys(data)
      .filter((key) => Object.hasOwn(binaryData, key))
      .map((key) => invalid("data", key, "duplicate of key present in binaryData")),
    ...sizeErrors({ ...data, ...binaryData }),
  ],
  validateUpdate: (next, old) => {
    if (old.immutable !== true) return [];
    const changed = (["data", "binaryData"] as const).filter((field) => !isDeepStrictEqual(next[field], old[field]));
    const errors = changed.map((field) => forbidden(field, SEALED));
    return next.immutable === true ? errors : [forbidden("immutable", SEALED), ...errors];
  },
  table: tableOf<ConfigMap>([
    NAME,
    { name: "Data", cell: ({ data = {}, binaryData = {} }) => Object.keys({ ...data, ...binaryData }).length },
    AGE,
  ]),
});

/** What is wrong with the keys of a map of data. */
export function keyErrors(field: string, data: Readonly<Record<string, string>>): FieldError[] {
  return Object.keys(data).flatMap((key) =>
    configKeyProblems(key).map((message) => invalid(`${field}[${key}]`, key, message)),
  );
}

/** An error if the values are too large together. */
export function sizeErrors(data: Readonly<Record<string, string>>): FieldError[] {
  const bytes = Object.values(data).reduce((sum, value) => sum + Buffer.byteLength(value), 0);
  return bytes > MOST_DATA_BYTES ? [tooLong("", MOST_DATA_BYTES)] : [];
}
