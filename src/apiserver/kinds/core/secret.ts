import { isDeepStrictEqual } from "node:util";
import { SECRETS } from "../../../adapters/kubeapi/index.ts";
import { ownValue } from "../../../lib/own-value.ts";
import type { Secret } from "../../../model/generated/types.ts";
import { type FieldError, forbidden, IMMUTABLE, invalid, required } from "../../status/field-error.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { defineKind } from "../kind.ts";
import { keyErrors, SEALED, sizeErrors } from "./config-map.ts";

/** Keys that a type of secret must have. */
const REQUIRED_KEYS: Readonly<Record<string, readonly string[]>> = {
  "kubernetes.io/dockercfg": [".dockercfg"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/ssh-auth": ["ssh-privatekey"],
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
};
const JSON_KEYS = [".dockercfg", ".dockerconfigjson"];
const ACCOUNT_TOKEN = "kubernetes.io/service-account-token";
const ACCOUNT_NAME = "kubernetes.io/service-account.name";

export const secretKind = defineKind<Secret>({
  resource: SECRETS,
  isSecret: true,
  defaults: (secret) => {
    const { stringData, ...rest } = secret;
    const type = secret.type || "Opaque";
    if (stringData === undefined) return { ...rest, type };
    const encoded = Object.entries(stringData).map(([key, value]) => [key, Buffer.from(value).toString("base64")]);
    return { ...rest, data: { ...secret.data, ...Object.fromEntries(encoded) }, type };
  },
  validate: (secret) => {
    const data = secret.data ?? {};
    const decoded = Object.entries(data).map(([key, value]): [string, string] => [
      key,
      Buffer.from(value, "base64").toString("latin1"),
    ]);
    return [...keyErrors("data", data), ...sizeErrors(Object.fromEntries(decoded)), ...typeErrors(secret)];
  },
  validateUpdate: (next, old) => {
    const errors: FieldError[] = [];
    if (next.type !== old.type) errors.push(invalid("type", next.type, IMMUTABLE));
    if (old.immutable !== true) return errors;
    if (next.immutable !== true) errors.push(forbidden("immutable", SEALED));
    if (!isDeepStrictEqual(next.data, old.data)) errors.push(forbidden("data", SEALED));
    return errors;
  },
  selectableFields: ({ type = "" }) => ({ type }),
  table: tableOf<Secret>([
    NAME,
    { name: "Type", cell: ({ type = "" }) => type },
    { name: "Data", cell: ({ data = {} }) => Object.keys(data).length },
    AGE,
  ]),
});

function typeErrors({ type = "", data = {}, metadata }: Secret): FieldError[] {
  const errors: FieldError[] = [];
  if (type === ACCOUNT_TOKEN && !ownValue(metadata.annotations ?? {}, ACCOUNT_NAME)) {
    errors.push(required(`metadata.annotations[${ACCOUNT_NAME}]`));
  }
  if (type === "kubernetes.io/basic-auth" && data.username === undefined && data.password === undefined) {
    errors.push(...["username", "password"].map((key) => required(`data[${key}]`)));
  }
  for (const key of ownValue(REQUIRED_KEYS, type) ?? []) {
    const value = ownValue(data, key);
    if (value === undefined) errors.push(required(`data[${key}]`));
    else if (JSON_KEYS.includes(key) && !isJson(value)) {
      errors.push(
        invalid(`data[${key}]`, "<secret contents redacted>", "invalid character looking for beginning of value"),
      );
    }
  }
  return errors;
}

function isJson(base64: string): boolean {
  try {
    JSON.parse(Buffer.from(base64, "base64").toString("utf8"));
    return true;
  } catch {
    return false;
  }
}
