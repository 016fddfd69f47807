import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { kinds, schemas } from "./generated/schema.ts";

const script = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "scripts", "generate-types.mjs");

test("the committed files are what the generator writes", () => {
  execFileSync(process.execPath, [script, "--check"], { stdio: "pipe" });
});

test("every type that a field names is in the table or a scalar", () => {
  const scalars = ["string", "boolean", "int32", "int64", "number", "quantity", "intOrString", "time", "bytes", "any"];
  for (const [type, fields] of Object.entries(schemas)) {
    for (const [name, field] of Object.entries(fields)) {
      assert.ok(scalars.includes(field.type) || schemas[field.type] !== undefined, `${type}.${name}: ${field.type}`);
    }
  }
});

test("kinds are found by apiVersion and kind", () => {
  assert.equal(kinds["v1/Pod"], "Pod");
  assert.equal(kinds["coordination.k8s.io/v1/Lease"], "Lease");
});

test("merge keys and defaults are kept", () => {
  assert.deepEqual(schemas.PodSpec?.containers, {
    type: "Container",
    of: "list",
    required: true,
    keys: ["name"],
    mergeKey: "name",
  });
  assert.equal(schemas.ContainerPort?.protocol?.default, "TCP");
  assert.deepEqual(schemas.ResourceRequirements?.limits, { type: "quantity", of: "map" });
});
