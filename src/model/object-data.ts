import type { ConfigMap, Secret } from "./generated/types.ts";

/** The content of a ConfigMap or Secret by key, decoded. */
export type ObjectEntries = ReadonlyMap<string, Uint8Array>;

/** The values of one object may have this many bytes together, as in Kubernetes. */
export const MOST_OBJECT_BYTES = 1024 * 1024;

/** A key of a ConfigMap or Secret: a file name of letters, digits, `-`, `_` and `.`, not beginning with `..`. */
export function isObjectKey(key: string): boolean {
  return key.length <= 253 && /^[-._a-zA-Z0-9]+$/.test(key) && key !== "." && !key.startsWith("..");
}

/** Text as UTF-8, `binaryData` decoded. */
export function configMapEntries({ data, binaryData }: ConfigMap): ObjectEntries {
  return new Map([...decoded(data, "utf8"), ...decoded(binaryData, "base64")]);
}

/** `stringData` wins over `data`, as when the API server takes it over. */
export function secretEntries({ data, stringData }: Secret): ObjectEntries {
  return new Map([...decoded(data, "base64"), ...decoded(stringData, "utf8")]);
}

function decoded(
  values: Readonly<Record<string, string>> | undefined,
  encoding: "utf8" | "base64",
): [string, Uint8Array][] {
  return Object.entries(values ?? {}).map(([key, text]) => [key, Buffer.from(text, encoding)]);
}
