import type { ConfigMap, Secret } from "../model/generated/types.ts";
import { isDnsLabel, isDnsSubdomain } from "../model/names.ts";
import { configMapEntries, isObjectKey, MOST_OBJECT_BYTES, secretEntries } from "../model/object-data.ts";
import { formatProblem } from "../model/problem.ts";
import { checkObject } from "../model/schema-check.ts";
import { normalizeObject, pruneObject } from "../model/schema-walk.ts";
import type { SourceObject } from "./snapshot.ts";

type ObjectResult = SourceObject | { readonly problems: readonly string[] };

/** Decodes a ConfigMap or Secret, or returns its problems; undefined for other kinds. Values are never shown. */
export function decodeObject(value: unknown): ObjectResult | undefined {
  // Flattened documents are objects with a kind.
  const { kind } = value as { kind: string };
  if (kind !== "ConfigMap" && kind !== "Secret") return undefined;
  const { errors } = checkObject(kind, value);
  if (errors.length > 0) return { problems: errors.map((error) => formatProblem(withoutValue(error))) };
  // `checkObject` has found every field to be of its type; only `metadata` may be missing.
  const known = pruneObject(kind, normalizeObject(kind, value)) as Partial<ConfigMap & Secret>;
  const { name = "", namespace = "default" } = known.metadata ?? {};
  const metadata = { ...known.metadata, name, namespace };
  const problems = [...nameProblems(kind, metadata), ...contentProblems(kind, { ...known, metadata })];
  if (problems.length > 0) return { problems };
  return kind === "ConfigMap"
    ? { kind, object: { ...known, metadata } }
    : { kind, object: withMergedData({ ...known, metadata }) };
}

/** Problems never contain the value: it may be a password in the wrong place. */
function withoutValue<T extends { path: string }>(problem: T): T {
  return /^(data|stringData|binaryData)\b/.test(problem.path) ? { ...problem, value: "" } : problem;
}

function nameProblems(kind: string, { name, namespace }: { name: string; namespace: string }): string[] {
  const found: string[] = [];
  if (name === "") found.push(`invalid ${kind}: name is needed; set metadata.name`);
  else if (!isDnsSubdomain(name))
    found.push(`metadata.name: is not a valid name; use lower-case letters, digits, - and .`);
  if (!isDnsLabel(namespace)) found.push("metadata.namespace: is not a valid namespace");
  return found;
}

function contentProblems(kind: "ConfigMap" | "Secret", object: ConfigMap & Secret): string[] {
  const fields = kind === "ConfigMap" ? (["data", "binaryData"] as const) : (["data", "stringData"] as const);
  const found = fields.flatMap((field) =>
    Object.keys(object[field] ?? {})
      .filter((key) => !isObjectKey(key))
      .map(
        (key) => `${field}: the key ${JSON.stringify(key.slice(0, 80))} is no file name; use letters, digits, -, _, .`,
      ),
  );
  if (kind === "ConfigMap") {
    const both = Object.keys(object.data ?? {}).filter((key) => Object.hasOwn(object.binaryData ?? {}, key));
    found.push(
      ...both.map((key) => `binaryData: the key ${JSON.stringify(key)} is in data already; remove one of them`),
    );
  }
  const entries = kind === "ConfigMap" ? configMapEntries(object) : secretEntries(object);
  const bytes = [...entries.values()].reduce((sum, value) => sum + value.length, 0);
  if (bytes > MOST_OBJECT_BYTES) found.push(`${bytes} bytes are too large; a ${kind} has at most 1 MiB`);
  return found;
}

/** Merges `stringData` into `data`, as the API server does. */
function withMergedData({ stringData, ...secret }: Secret): Secret {
  const written = Object.entries(stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
  return { ...secret, data: { ...secret.data, ...Object.fromEntries(written) } };
}
