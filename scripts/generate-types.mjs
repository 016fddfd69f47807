// Writes src/model/generated/{types,schema,api-schema,api-protobuf}.ts from the schemas in scripts/schemas/.
//
//   node scripts/generate-types.mjs                 write the generated files
//   node scripts/generate-types.mjs --check         exit 1 when the committed files differ
//   node scripts/generate-types.mjs --import DIR    first copy what ROOTS reach from the OpenAPI files of DIR, which is
//                                                   api/openapi-spec/v3 of Kubernetes, without their prose
//
// layout.json and protobuf.json beside the schemas come from scripts/generate-api-layout.mjs.
//
// The output depends only on scripts/schemas: same input, same bytes.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const schemaDir = join(here, "schemas");
const outputDir = join(here, "..", "src", "model", "generated");
const LAYOUT = "layout.json";
const PROTOBUF = "protobuf.json";

const core = (...names) => names.map((name) => `io.k8s.api.core.v1.${name}`);

/** What `--import` copies, with everything reachable from it: file to write, OpenAPI file to read, root schemas. */
const ROOTS = [
  {
    file: "core.json",
    from: "api__v1.json",
    roots: core("Pod", "PodList", "Node", "ConfigMap", "Secret", "Event"),
  },
  {
    file: "coordination.json",
    from: "apis__coordination.k8s.io__v1.json",
    roots: ["io.k8s.api.coordination.v1.Lease"],
  },
  {
    file: "core-api.json",
    from: "api__v1.json",
    roots: [
      ...core("Service", "ServiceAccount", "PersistentVolume", "PersistentVolumeClaim"),
      ...core("Namespace", "Endpoints", "Binding"),
      "io.k8s.api.authentication.v1.TokenRequest",
      "io.k8s.api.autoscaling.v1.Scale",
      "io.k8s.api.policy.v1.Eviction",
      "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
      "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    ],
  },
  {
    file: "certificates.json",
    from: "apis__certificates.k8s.io__v1.json",
    roots: ["io.k8s.api.certificates.v1.CertificateSigningRequest"],
  },
  { file: "node.json", from: "apis__node.k8s.io__v1.json", roots: ["io.k8s.api.node.v1.RuntimeClass"] },
  {
    file: "storage.json",
    from: "apis__storage.k8s.io__v1.json",
    roots: ["CSINode", "CSIDriver", "VolumeAttachment", "StorageClass"].map((name) => `io.k8s.api.storage.v1.${name}`),
  },
  {
    file: "authentication.json",
    from: "apis__authentication.k8s.io__v1.json",
    roots: ["TokenReview", "SelfSubjectReview"].map((name) => `io.k8s.api.authentication.v1.${name}`),
  },
  {
    file: "authorization.json",
    from: "apis__authorization.k8s.io__v1.json",
    roots: ["", "Local", "Self"].map((kind) => `io.k8s.api.authorization.v1.${kind}SubjectAccessReview`),
  },
  {
    file: "authorization-rules.json",
    from: "apis__authorization.k8s.io__v1.json",
    roots: ["io.k8s.api.authorization.v1.SelfSubjectRulesReview"],
  },
  {
    file: "apps.json",
    from: "apis__apps__v1.json",
    roots: ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision"].map(
      (name) => `io.k8s.api.apps.v1.${name}`,
    ),
  },
  {
    file: "batch.json",
    from: "apis__batch__v1.json",
    roots: ["Job", "CronJob"].map((name) => `io.k8s.api.batch.v1.${name}`),
  },
  {
    file: "discovery.json",
    from: "apis__discovery.k8s.io__v1.json",
    roots: ["io.k8s.api.discovery.v1.EndpointSlice"],
  },
  { file: "events.json", from: "apis__events.k8s.io__v1.json", roots: ["io.k8s.api.events.v1.Event"] },
  {
    file: "scheduling.json",
    from: "apis__scheduling.k8s.io__v1.json",
    roots: ["io.k8s.api.scheduling.v1.PriorityClass"],
  },
];

/**
 * What the table of schema.ts holds, with everything reachable from it: the kinds that manifests are checked against
 * and patches are merged by. The others are types only, because the table costs memory in every agent.
 */
const TABLED = [...core("Pod", "PodList", "Node", "ConfigMap", "Secret", "Event"), "io.k8s.api.coordination.v1.Lease"];

/** The table of the API server, in a file of its own that only an agent with one loads: what the other does not hold. */
const SERVED = [
  ...core(
    "Service",
    "ServiceAccount",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Namespace",
    "Endpoints",
    "Binding",
  ),
  ...["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision"].map(
    (name) => `io.k8s.api.apps.v1.${name}`,
  ),
  ...["Job", "CronJob"].map((name) => `io.k8s.api.batch.v1.${name}`),
  ...["StorageClass", "CSINode", "CSIDriver", "VolumeAttachment"].map((name) => `io.k8s.api.storage.v1.${name}`),
  ...["TokenRequest", "TokenReview", "SelfSubjectReview"].map((name) => `io.k8s.api.authentication.v1.${name}`),
  ...["", "Local", "Self"].map((kind) => `io.k8s.api.authorization.v1.${kind}SubjectAccessReview`),
  "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
  "io.k8s.api.autoscaling.v1.Scale",
  "io.k8s.api.policy.v1.Eviction",
  "io.k8s.api.discovery.v1.EndpointSlice",
  "io.k8s.api.events.v1.Event",
  "io.k8s.api.node.v1.RuntimeClass",
  "io.k8s.api.scheduling.v1.PriorityClass",
  "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
];

/** Names that two groups use for different things. */
const RENAMED = {
  "io.k8s.api.storage.v1.TokenRequest": "CSITokenRequest",
  "io.k8s.api.events.v1.Event": "EventsEvent",
  "io.k8s.api.events.v1.EventSeries": "EventsEventSeries",
  "io.k8s.api.discovery.v1.EndpointPort": "EndpointSlicePort",
};

/** Schemas that are one value on the wire, by their short name. */
const SCALARS = {
  Quantity: { type: "quantity", ts: "Quantity" },
  IntOrString: { type: "intOrString", ts: "IntOrString" },
  Time: { type: "time", ts: "Time" },
  MicroTime: { type: "microTime", ts: "Time" },
  FieldsV1: { type: "any", ts: "unknown" },
  RawExtension: { type: "any", ts: "unknown" },
};

const SCALAR_DECLARATIONS = `/** An amount in its text form (\`500m\`, \`1Gi\`); see ../quantity.ts. */
export type Quantity = string;

/** A moment as RFC 3339 text. */
export type Time = string;

/** A number, or a name or percentage. */
export type IntOrString = number | string;
`;

const HEADER = "// Written by scripts/generate-types.mjs from scripts/schemas; do not edit.\n";

function shortName(fullName) {
  if (RENAMED[fullName] !== undefined) return RENAMED[fullName];
  return fullName.slice(fullName.lastIndexOf(".") + 1);
}

function refOf(schema) {
  return schema.$ref ?? schema.allOf?.[0]?.$ref;
}

function refName(schema) {
  const ref = refOf(schema);
  return ref === undefined ? undefined : ref.slice(ref.lastIndexOf("/") + 1);
}

/** Type of one value: the word of the schema table and the TypeScript type. */
function valueType(schema) {
  const name = refName(schema);
  if (name !== undefined) {
    const short = shortName(name);
    return SCALARS[short] ?? { type: short, ts: short };
  }
  switch (schema.type) {
    case "string":
      if (schema.format === "byte") return { type: "bytes", ts: "string" };
      return { type: schema.format === "date-time" ? "time" : "string", ts: "string" };
    case "boolean":
      return { type: "boolean", ts: "boolean" };
    case "integer":
      return { type: schema.format === "int32" ? "int32" : "int64", ts: "number" };
    case "number":
      return { type: "number", ts: "number" };
    default:
      return { type: "any", ts: "unknown" };
  }
}

function describeField(name, schema, isRequired) {
  const field = { name, required: isRequired };
  let inner = schema;
  if (schema.type === "array") {
    field.of = "list";
    inner = schema.items;
  } else if (schema.type === "object" && schema.additionalProperties !== undefined) {
    field.of = "map";
    inner = schema.additionalProperties;
  }
  if (inner.type === "array") {
    // Maps of lists (UserInfo.extra): the elements are checked by whoever needs them.
    return { ...field, type: "any", ts: `Readonly<Record<string, readonly ${valueType(inner.items).ts}[]>>` };
  }
  const value = valueType(inner);
  field.type = value.type;
  if (field.of === "list") field.ts = `readonly ${value.ts}[]`;
  else if (field.of === "map") field.ts = `Readonly<Record<string, ${value.ts}>>`;
  else field.ts = value.ts;
  const isEmptyObject = typeof schema.default === "object" && Object.keys(schema.default).length === 0;
  if (schema.default !== undefined && !isEmptyObject) field.default = schema.default;
  if (schema["x-kubernetes-list-type"] === "map") field.keys = schema["x-kubernetes-list-map-keys"];
  if (schema["x-kubernetes-list-type"] === "set") field.isSet = true;
  if (schema["x-kubernetes-map-type"] === "atomic") field.isAtomic = true;
  const strategies = (schema["x-kubernetes-patch-strategy"] ?? "").split(",");
  if (schema["x-kubernetes-patch-merge-key"] !== undefined) field.mergeKey = schema["x-kubernetes-patch-merge-key"];
  else if (strategies.includes("merge")) field.merges = true;
  if (strategies.includes("retainKeys")) field.retainsKeys = true;
  return field;
}

/** `metadata` and `spec` of a whole object are always on the wire, though the schema calls them optional. */
function isAlwaysPresent(schema, name, field) {
  if (schema["x-kubernetes-group-version-kind"] === undefined || field.default === undefined) return false;
  return name === "spec" || (name === "metadata" && shortName(refName(field) ?? "") === "ObjectMeta");
}

function describeType(fullName, schema, layout) {
  const required = new Set(schema.required ?? []);
  const fields = Object.keys(schema.properties ?? {})
    .sort()
    .map((name) => {
      const property = schema.properties[name];
      const field = describeField(name, property, required.has(name));
      const zero = layout[fullName]?.[name];
      return { ...field, ...(zero && { zero }), present: field.required || isAlwaysPresent(schema, name, property) };
    });
  const kinds = schema["x-kubernetes-group-version-kind"] ?? [];
  const isAtomic = schema["x-kubernetes-map-type"] === "atomic";
  return { fullName, name: shortName(fullName), kinds, fields, isAtomic };
}

function loadTypes() {
  const schemas = new Map();
  for (const file of readdirSync(schemaDir)
    .filter((name) => name.endsWith(".json") && name !== LAYOUT && name !== PROTOBUF)
    .sort()) {
    for (const [name, schema] of Object.entries(JSON.parse(readFileSync(join(schemaDir, file), "utf8")))) {
      schemas.set(name, schema);
    }
  }
  const layout = JSON.parse(readFileSync(join(schemaDir, LAYOUT), "utf8"));
  const byShortName = new Map();
  for (const [fullName, schema] of schemas) {
    const type = describeType(fullName, schema, layout);
    if (SCALARS[type.name] !== undefined) continue;
    const other = byShortName.get(type.name);
    if (other !== undefined) throw new Error(`${fullName} and ${other.fullName} have the same short name`);
    byShortName.set(type.name, type);
  }
  return [...byShortName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function renderTypes(types) {
  const parts = [HEADER, SCALAR_DECLARATIONS];
  for (const type of types) {
    const lines = type.fields.map((field) => `  readonly ${field.name}${field.present ? "" : "?"}: ${field.ts};`);
    parts.push(`/** ${type.fullName} */\nexport interface ${type.name} {\n${lines.join("\n")}\n}\n`);
  }
  return parts.join("\n");
}

function renderField(field) {
  const parts = [`type: ${JSON.stringify(field.type)}`];
  if (field.of !== undefined) parts.push(`of: ${JSON.stringify(field.of)}`);
  if (field.required) parts.push("required: true");
  if (field.default !== undefined) parts.push(`default: ${JSON.stringify(field.default)}`);
  if (field.keys !== undefined) parts.push(`keys: ${JSON.stringify(field.keys)}`);
  if (field.isSet) parts.push("isSet: true");
  if (field.isAtomic) parts.push("isAtomic: true");
  if (field.mergeKey !== undefined) parts.push(`mergeKey: ${JSON.stringify(field.mergeKey)}`);
  if (field.merges) parts.push("merges: true");
  if (field.retainsKeys) parts.push("retainsKeys: true");
  if (field.zero !== undefined) parts.push(`zero: ${JSON.stringify(field.zero)}`);
  return `    ${field.name}: { ${parts.join(", ")} },`;
}

const SCHEMA_DECLARATIONS = `/** One field: \`type\` is a scalar word or the name of another entry of the table. */
export interface FieldSchema {
  readonly type: string;
  /** Missing for a single value. */
  readonly of?: "list" | "map";
  readonly required?: true;
  readonly default?: unknown;
  /** The fields that tell the elements of a list apart. */
  readonly keys?: readonly string[];
  readonly isSet?: true;
  /** A map or an object that field managers own as a whole. */
  readonly isAtomic?: true;
  /** The key field of a strategic merge patch. */
  readonly mergeKey?: string;
  /** A list of plain values that a strategic merge patch adds to. */
  readonly merges?: true;
  /** A strategic merge patch may name the keys that stay. */
  readonly retainsKeys?: true;
  /**
   * What an API server makes of a zero value (empty text, 0, false, an empty object). \`omit\`: it is the same as none.
   * \`keep\`: the field is always there. \`omitzero\`: an object that is left out while it is empty. Missing: the value
   * stays, but an empty list or map is the same as none.
   */
  readonly zero?: "omit" | "keep" | "omitzero";
}

/** The fields of one type by name. */
export type TypeSchema = Readonly<Record<string, FieldSchema>>;
`;

/** `apiVersion/kind` and type name of the types that are kinds. */
function kindsOf(types) {
  const kinds = [];
  for (const type of types) {
    for (const { group, version, kind } of type.kinds) {
      const isOwn = type.fullName.endsWith(`.${version}.${kind}`);
      if (isOwn && kind !== "DeleteOptions")
        kinds.push([`${group === "" ? "" : `${group}/`}${version}/${kind}`, type.name]);
    }
  }
  return kinds.sort();
}

function renderTable(types) {
  return types.flatMap((type) => [`  ${type.name}: {`, ...type.fields.map(renderField), "  },"]);
}

function renderKinds(types) {
  return kindsOf(types).map(([key, name]) => `  ${JSON.stringify(key)}: ${JSON.stringify(name)},`);
}

function renderSchema(types) {
  const lines = [HEADER, SCHEMA_DECLARATIONS];
  lines.push("/** Type name by `apiVersion/kind`. */");
  lines.push("export const kinds: Readonly<Record<string, string>> = {");
  lines.push(...renderKinds(types), "};\n", "/** All types by name. */");
  lines.push("export const schemas: Readonly<Record<string, TypeSchema>> = {");
  lines.push(...renderTable(types));
  return `${lines.join("\n")}\n};\n`;
}

/** The types that only the API server needs, and what it needs to know of the others. */
function renderApiSchema(types, tabled) {
  const own = types.filter((type) => !tabled.includes(type));
  const lines = [HEADER, 'import type { TypeSchema } from "./schema.ts";\n'];
  lines.push("/** Type name by `apiVersion/kind`, beyond those of schema.ts. */");
  lines.push("export const apiKinds: Readonly<Record<string, string>> = {", ...renderKinds(own), "};\n");
  lines.push("/** Types by name, beyond those of schema.ts. */");
  lines.push("export const apiSchemas: Readonly<Record<string, TypeSchema>> = {", ...renderTable(own), "};\n");
  lines.push("/** Types that field managers own as a whole. */");
  lines.push("export const atomicTypes: ReadonlySet<string> = new Set([");
  lines.push(...types.filter(({ isAtomic }) => isAtomic).map(({ name }) => `  ${JSON.stringify(name)},`), "]);\n");
  lines.push("/** The names of types in OpenAPI. */");
  lines.push("export const openApiNames: Readonly<Record<string, string>> = {");
  lines.push(...types.map(({ name, fullName }) => `  ${name}: ${JSON.stringify(fullName)},`), "};\n");
  return lines.join("\n");
}

/** The numbers of fields, in a file that is loaded when the first client speaks protobuf. */
function renderProtobuf(types) {
  const numbers = JSON.parse(readFileSync(join(schemaDir, PROTOBUF), "utf8"));
  const lines = [HEADER, "/** Fields by their number: the name in JSON, or the fields of what JSON has inline. */"];
  lines.push("export interface ProtobufFields {\n  readonly [number: number]: string | ProtobufFields;\n}\n");
  lines.push("/** Types by name. */", "export const protobufTypes: Readonly<Record<string, ProtobufFields>> = {");
  for (const { name, fullName } of types) {
    const text = JSON.stringify(numbers[fullName] ?? {}).replace(/"(\d+)":/g, "$1:");
    lines.push(`  ${name}: ${text},`);
  }
  return `${lines.join("\n")}\n};\n`;
}

/** The types that the roots reach. */
function reachedFrom(roots, types) {
  const byName = new Map(types.map((type) => [type.name, type]));
  const queue = roots.map(shortName);
  const reached = new Set();
  for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
    const type = byName.get(name);
    if (type === undefined || reached.has(type)) continue;
    reached.add(type);
    queue.push(...type.fields.map((field) => field.type));
  }
  return types.filter((type) => reached.has(type));
}

/** The generated files, by name. */
export function generate() {
  const types = loadTypes();
  const tabled = reachedFrom(TABLED, types);
  const served = reachedFrom([...TABLED, ...SERVED], types);
  return {
    "types.ts": renderTypes(types),
    "schema.ts": renderSchema(tabled),
    "api-schema.ts": renderApiSchema(served, tabled),
    "api-protobuf.ts": renderProtobuf(served),
  };
}

function collectRefs(node, found) {
  if (Array.isArray(node)) for (const item of node) collectRefs(item, found);
  else if (node !== null && typeof node === "object") {
    if (typeof node.$ref === "string") found.add(refName(node));
    for (const value of Object.values(node)) collectRefs(value, found);
  }
  return found;
}

/** The schemas of an OpenAPI file without their prose. */
function readUpstream(path) {
  return JSON.parse(readFileSync(path, "utf8"), (key, value) =>
    key === "description" && typeof value === "string" ? undefined : value,
  ).components.schemas;
}

/** Copies the reachable schemas; one that an earlier file holds already is not written again. */
function importSchemas(directory) {
  const written = new Set();
  for (const { file, from, roots } of ROOTS) {
    const all = readUpstream(join(directory, from.replace(".json", "_openapi.json")));
    const queue = [...roots];
    const reached = new Map();
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
      if (reached.has(name) || written.has(name)) continue;
      if (all[name] === undefined) throw new Error(`${from} has no schema ${name}`);
      reached.set(name, all[name]);
      queue.push(...collectRefs(all[name], new Set()));
    }
    for (const name of reached.keys()) written.add(name);
    const sorted = Object.fromEntries([...reached].sort(([a], [b]) => (a < b ? -1 : 1)));
    writeFileSync(join(schemaDir, file), `${JSON.stringify(sorted, null, 1)}\n`);
  }
}

function main(args) {
  if (args[0] === "--import") importSchemas(args[1]);
  let isStale = false;
  for (const [name, text] of Object.entries(generate())) {
    const path = join(outputDir, name);
    if (args[0] !== "--check") writeFileSync(path, text);
    else if (readFileSync(path, "utf8") !== text) {
      isStale = true;
      process.stderr.write(`${path} is stale: run node scripts/generate-types.mjs\n`);
    }
  }
  process.exitCode = isStale ? 1 : 0;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  main(process.argv.slice(2));
