import { createHash } from "node:crypto";
import { gitVersion } from "../../lib/version.ts";
import { atomicTypes, openApiNames } from "../../model/generated/api-schema.ts";
import type { FieldSchema } from "../../model/generated/schema.ts";
import type { Kind } from "../kinds/kind.ts";
import type { KindTable } from "../kinds/kind-table.ts";
import { typeSchema } from "../schema/type-schema.ts";

const SCALARS: Readonly<Record<string, object>> = {
  string: { type: "string" },
  boolean: { type: "boolean" },
  int32: { type: "integer", format: "int32" },
  int64: { type: "integer", format: "int64" },
  number: { type: "number", format: "double" },
  bytes: { type: "string", format: "byte" },
  any: { type: "object" },
};

/** Scalars that have a name of their own. */
const NAMED_SCALARS: Readonly<Record<string, readonly [name: string, schema: object]>> = {
  quantity: ["io.k8s.apimachinery.pkg.api.resource.Quantity", { oneOf: [{ type: "string" }, { type: "number" }] }],
  intOrString: [
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    { format: "int-or-string", oneOf: [{ type: "integer" }, { type: "string" }] },
  ],
  time: ["io.k8s.apimachinery.pkg.apis.meta.v1.Time", { type: "string", format: "date-time" }],
  microTime: ["io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", { type: "string", format: "date-time" }],
};

const REF = "#/components/schemas/";

/** `/openapi/v3`: the documents there are, by group and version. */
export function openApiIndex(kinds: KindTable): object {
  const paths = kinds.groupVersions.map(({ group, version }) => {
    const path = group === "" ? `api/${version}` : `apis/${group}/${version}`;
    // The schemas are those of the build, and nothing else.
    const hash = createHash("sha256").update(`${gitVersion} ${path}`).digest("hex");
    return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash.slice(0, 32).toUpperCase()}` }];
  });
  return { paths: Object.fromEntries(paths) };
}

/** The document of one group and version. It is made anew for each request: few ask, and it is large. */
export function openApiDocument(kinds: KindTable, group: string, version: string): object {
  const own = kinds.all.filter(({ resource }) => resource.group === group && resource.version === version);
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: "unversioned" },
    paths: Object.assign({}, ...own.map(pathsOf)) as object,
    components: { schemas: componentsOf(own.map(({ schemaType }) => schemaType)) },
  };
}

function pathsOf(kind: Kind): object {
  const { group, version, plural, isNamespaced, kind: word } = kind.resource;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const collection = `${root}${isNamespaced ? "/namespaces/{namespace}" : ""}/${plural}`;
  const gvk = { group, version, kind: word };
  const operation = (action: string, parameters: readonly string[]): object => ({
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": gvk,
    parameters: parameters.map(parameter),
    responses: { 200: { description: "OK", content: contentOf(kind) } },
  });
  const write = ["dryRun", "fieldManager", "fieldValidation"];
  return {
    [collection]: {
      get: operation("list", ["continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "watch"]),
      post: operation("post", write),
      delete: operation("deletecollection", ["dryRun", "labelSelector", "fieldSelector"]),
    },
    [`${collection}/{name}`]: {
      get: operation("get", []),
      put: operation("put", write),
      patch: operation("patch", [...write, "force"]),
      delete: operation("delete", ["dryRun", "gracePeriodSeconds", "propagationPolicy"]),
    },
  };
}

function parameter(name: string): object {
  const type = name === "force" || name === "watch" ? "boolean" : name === "limit" ? "integer" : "string";
  return { name, in: "query", schema: { type, uniqueItems: true } };
}

function contentOf({ schemaType }: Kind): object {
  return { "application/json": { schema: { $ref: `${REF}${nameOf(schemaType)}` } } };
}

/** The schemas of types and all that they are made of. */
function componentsOf(roots: readonly string[]): object {
  const components = new Map<string, object>();
  const queue = [...roots];
  for (let type = queue.shift(); type !== undefined; type = queue.shift()) {
    const scalar = NAMED_SCALARS[type];
    if (scalar !== undefined) components.set(scalar[0], scalar[1]);
    const schema = typeSchema(type);
    if (schema === undefined || components.has(nameOf(type))) continue;
    components.set(nameOf(type), typeDocument(type));
    queue.push(...Object.values(schema).map((field) => field.type));
  }
  return Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function typeDocument(type: string): object {
  const fields = Object.entries(typeSchema(type) ?? {});
  const required = fields.filter(([, field]) => field.required).map(([name]) => name);
  const gvks = gvksOf(type);
  return {
    type: "object",
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(fields.map(([name, field]) => [name, fieldDocument(field)])),
    ...(atomicTypes.has(type) && { "x-kubernetes-map-type": "atomic" }),
    ...(gvks.length > 0 && { "x-kubernetes-group-version-kind": gvks }),
  };
}

function fieldDocument(field: FieldSchema): object {
  const inner = valueDocument(field);
  const patch = {
    ...(field.mergeKey !== undefined && { "x-kubernetes-patch-merge-key": field.mergeKey }),
    ...strategyOf(field),
  };
  if (field.of === "list") {
    const listType = field.keys ? "map" : field.isSet ? "set" : "atomic";
    return {
      type: "array",
      items: inner,
      ...(field.keys && { "x-kubernetes-list-map-keys": field.keys }),
      "x-kubernetes-list-type": listType,
      ...patch,
    };
  }
  const atomic = field.isAtomic ? { "x-kubernetes-map-type": "atomic" } : {};
  if (field.of === "map") return { type: "object", additionalProperties: inner, ...atomic };
  return { ...inner, ...(field.default !== undefined && { default: field.default }), ...atomic, ...patch };
}

function strategyOf({ mergeKey, merges, retainsKeys }: FieldSchema): object {
  const words = [...(mergeKey !== undefined || merges ? ["merge"] : []), ...(retainsKeys ? ["retainKeys"] : [])];
  return words.length === 0 ? {} : { "x-kubernetes-patch-strategy": words.join(",") };
}

function valueDocument({ type }: FieldSchema): object {
  const named = NAMED_SCALARS[type]?.[0];
  const known = typeSchema(type) !== undefined;
  if (named !== undefined || known) return { allOf: [{ $ref: `${REF}${named ?? nameOf(type)}` }] };
  return SCALARS[type] ?? {};
}

function nameOf(type: string): string {
  return openApiNames[type] ?? type;
}

/** The group, version and kind of a type that is a kind. */
function gvksOf(type: string): readonly object[] {
  const schema = typeSchema(type);
  if (schema?.apiVersion === undefined || schema.kind === undefined) return [];
  const [, group = "", version = "", kind = ""] = /^io\.k8s\.api\.([^.]+)\.([^.]+)\.([^.]+)$/.exec(nameOf(type)) ?? [];
  return kind === "" ? [] : [{ group: GROUPS[group] ?? group, version, kind }];
}

/** Groups whose name is not that of their package. */
const GROUPS: Readonly<Record<string, string>> = {
  core: "",
  authentication: "authentication.k8s.io",
  authorization: "authorization.k8s.io",
  coordination: "coordination.k8s.io",
  discovery: "discovery.k8s.io",
  events: "events.k8s.io",
  node: "node.k8s.io",
  scheduling: "scheduling.k8s.io",
  storage: "storage.k8s.io",
};
