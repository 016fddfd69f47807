import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { apiKinds, apiSchemas, atomicTypes, openApiNames } from "./generated/api-schema.ts";
import { kinds, schemas } from "./generated/schema.ts";

const script = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "scripts", "generate-types.mjs");

test("the committed files are what the generator writes", () => {
  execFileSync(process.execPath, [script, "--check"], { stdio: "pipe" });
});

test("every type that a field names is in the table or a scalar", () => {
  const scalars = ["string", "boolean", "int32", "int64", "number", "quantity", "intOrString", "bytes", "any"];
  scalars.push("time", "microTime");
  const all = { ...schemas, ...apiSchemas };
  for (const [type, fields] of Object.entries(all)) {
    for (const [name, field] of Object.entries(fields)) {
      assert.ok(scalars.includes(field.type) || all[field.type] !== undefined, `${type}.${name}: ${field.type}`);
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
    zero: "keep",
  });
  assert.equal(schemas.ContainerPort?.protocol?.default, "TCP");
  assert.deepEqual(schemas.ResourceRequirements?.limits, { type: "quantity", of: "map" });
});

test("the table of the API server begins where the other one ends", () => {
  assert.equal(apiKinds["apps/v1/Deployment"], "Deployment");
  assert.equal(apiKinds["events.k8s.io/v1/Event"], "EventsEvent");
  assert.deepEqual(
    Object.keys(apiSchemas).filter((name) => schemas[name] !== undefined),
    [],
  );
  assert.equal(openApiNames.EventsEvent, "io.k8s.api.events.v1.Event");
  assert.ok(atomicTypes.has("LabelSelector"));
});

test("what an API server leaves out and what it always shows is known", () => {
  assert.equal(schemas.Container?.tty?.zero, "omit");
  assert.equal(schemas.Container?.resources?.zero, "keep");
  assert.equal(schemas.ObjectMeta?.creationTimestamp?.zero, "omitzero");
  assert.equal(apiSchemas.DeploymentSpec?.replicas?.zero, undefined);
});
