// Writes src/model/generated/{types,schema}.ts from the schemas in scripts/schemas/.
//
//   node scripts/generate-types.mjs                 write the generated files
//   node scripts/generate-types.mjs --check         exit 1 when the committed files differ
//   node scripts/generate-types.mjs --import DIR    first copy what ROOTS reach from the OpenAPI files of DIR
//
// The output depends only on scripts/schemas: same input, same bytes.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const schemaDir = join(here, "schemas");
const outputDir = join(here, "..", "src", "model", "generated");

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
      "io.k8s.api.authentication.v1.TokenRequest",
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
    roots: ["CSINode", "CSIDriver", "VolumeAttachment"].map((name) => `io.k8s.api.storage.v1.${name}`),
  },
  {
    file: "authentication.json",
    from: "apis__authentication.k8s.io__v1.json",
    roots: ["io.k8s.api.authentication.v1.TokenReview"],
  },
  {
    file: "authorization.json",
    from: "apis__authorization.k8s.io__v1.json",
    roots: ["io.k8s.api.authorization.v1.SubjectAccessReview"],
  },
];

/**
 * What the table of schema.ts holds, with everything reachable from it: the kinds that manifests are checked against
 * and patches are merged by. The others are types only, because the table costs memory in every agent.
 */
const TABLED = [...core("Pod", "PodList", "Node", "ConfigMap", "Secret", "Event"), "io.k8s.api.coordination.v1.Lease"];

/** Names that two groups use for different things. */
const RENAMED = { "io.k8s.api.storage.v1.TokenRequest": "CSITokenRequest" };

/** Schemas that are one value on the wire, by their short name. */
const SCALARS = {
  Quantity: { type: "quantity", ts: "Quantity" },
  IntOrString: { type: "intOrString", ts: "IntOrString" },
  Time: { type: "time", ts: "Time" },
  MicroTime: { type: "time", ts: "Time" },
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
  if (schema["x-kubernetes-patch-merge-key"] !== undefined) field.mergeKey = schema["x-kubernetes-patch-merge-key"];
  return field;
}

/** `metadata` and `spec` of a whole object are always on the wire, though the schema calls them optional. */
function isAlwaysPresent(schema, name, field) {
  if (schema["x-kubernetes-group-version-kind"] === undefined || field.default === undefined) return false;
  return name === "spec" || (name === "metadata" && shortName(refName(field) ?? "") === "ObjectMeta");
}

function describeType(fullName, schema) {
  const required = new Set(schema.required ?? []);
  const fields = Object.keys(schema.properties ?? {})
    .sort()
    .map((name) => {
      const property = schema.properties[name];
      const field = describeField(name, property, required.has(name));
      return { ...field, present: field.required || isAlwaysPresent(schema, name, property) };
    });
  return { fullName, name: shortName(fullName), kinds: schema["x-kubernetes-group-version-kind"] ?? [], fields };
}

function loadTypes() {
  const schemas = new Map();
  for (const file of readdirSync(schemaDir)
    .filter((name) => name.endsWith(".json"))
    .sort()) {
    for (const [name, schema] of Object.entries(JSON.parse(readFileSync(join(schemaDir, file), "utf8")))) {
      schemas.set(name, schema);
    }
  }
  const byShortName = new Map();
  for (const [fullName, schema] of schemas) {
    const type = describeType(fullName, schema);
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
  if (field.mergeKey !== undefined) parts.push(`mergeKey: ${JSON.stringify(field.mergeKey)}`);
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
  /** The key field of a strategic merge patch. */
  readonly mergeKey?: string;
}

/** The fields of one type by name. */
export type TypeSchema = Readonly<Record<string, FieldSchema>>;
`;

function renderSchema(types) {
  const lines = [HEADER, SCHEMA_DECLARATIONS];
  const kinds = [];
  for (const type of types) {
    for (const { group, version, kind } of type.kinds) {
      if (kind === type.name) kinds.push([`${group === "" ? "" : `${group}/`}${version}/${kind}`, type.name]);
    }
  }
  lines.push("/** Type name by `apiVersion/kind`. */");
  lines.push("export const kinds: Readonly<Record<string, string>> = {");
  for (const [key, name] of kinds.sort()) lines.push(`  ${JSON.stringify(key)}: ${JSON.stringify(name)},`);
  lines.push("};\n", "/** All types by name. */");
  lines.push("export const schemas: Readonly<Record<string, TypeSchema>> = {");
  for (const type of types) {
    lines.push(`  ${type.name}: {`, ...type.fields.map(renderField), "  },");
  }
  return `${lines.join("\n")}\n};\n`;
}

/** The types that the roots of the table reach. */
function tabled(types) {
  const byName = new Map(types.map((type) => [type.name, type]));
  const queue = TABLED.map(shortName);
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
  return { "types.ts": renderTypes(types), "schema.ts": renderSchema(tabled(types)) };
}

function collectRefs(node, found) {
  if (Array.isArray(node)) for (const item of node) collectRefs(item, found);
  else if (node !== null && typeof node === "object") {
    if (typeof node.$ref === "string") found.add(refName(node));
    for (const value of Object.values(node)) collectRefs(value, found);
  }
  return found;
}

/** Copies the reachable schemas; one that an earlier file holds already is not written again. */
function importSchemas(directory) {
  const written = new Set();
  for (const { file, from, roots } of ROOTS) {
    const all = JSON.parse(readFileSync(join(directory, from), "utf8"));
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
