import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalJson } from "./canonical-json.ts";
import { formatProblem } from "./problem.ts";
import { checkObject, typeOfKind } from "./schema-check.ts";
import { normalizeObject, pruneObject } from "./schema-walk.ts";

const good = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "a" },
  spec: { containers: [{ name: "c", image: "i" }] },
};

function podWith(container: object, spec: object = {}): unknown {
  return { ...good, spec: { containers: [{ name: "c", ...container }], ...spec } };
}

test("a good pod has no findings", () => {
  assert.deepEqual(checkObject("Pod", good), { errors: [], warnings: [] });
});

const errorCases: [string, unknown, string[]][] = [
  [
    "a text instead of an object",
    "x",
    ['(object): must be an object (Pod) ("x"); write its fields below it, indented'],
  ],
  ["null", null, ["(object): must be an object (Pod) (null); write its fields below it, indented"]],
  ["a missing required field", { spec: {} }, ["spec.containers: is required; add containers"]],
  ["a required field that is null", { spec: { containers: null } }, ["spec.containers: is required; add containers"]],
  ["a container without a name", { spec: { containers: [{}] } }, ["spec.containers[0].name: is required; add name"]],
  [
    "a map instead of a list",
    { spec: { containers: { name: "c" } } },
    ["spec.containers: must be a list (an object); write each element behind a dash, or in [ ]"],
  ],
  [
    "a null element",
    { spec: { containers: [null] } },
    ["spec.containers[0]: must be an object (Container) (null); write its fields below it, indented"],
  ],
  [
    "a number instead of text",
    podWith({ image: 1 }),
    ["spec.containers[0].image: must be text (1); put it in quotes: it is a number now"],
  ],
  [
    "a boolean in quotes",
    podWith({}, { hostNetwork: "true" }),
    ['spec.hostNetwork: must be true or false ("true"); write it without quotes'],
  ],
  [
    "a number in quotes",
    podWith({ ports: [{ containerPort: "80" }] }),
    ['spec.containers[0].ports[0].containerPort: must be a whole number ("80"); write it without quotes'],
  ],
  [
    "a fraction",
    podWith({}, { priority: 1.5 }),
    ["spec.priority: must be a whole number (1.5); write a number without a fraction"],
  ],
  [
    "a number that does not fit",
    podWith({}, { priority: 2 ** 31 }),
    ["spec.priority: is out of range (2147483648); it must fit int32"],
  ],
  [
    "a bad quantity",
    podWith({ resources: { limits: { cpu: "1 core" } } }),
    ['spec.containers[0].resources.limits.cpu: is not a quantity ("1 core"); write it like 500m, 1.5 or 128Mi'],
  ],
  [
    "a bad time",
    { ...good, metadata: { creationTimestamp: "yesterday" } },
    ['metadata.creationTimestamp: is not a time ("yesterday"); write it like 2026-01-31T12:00:00Z'],
  ],
  [
    "a label that is a number",
    { ...good, metadata: { labels: { "a.b/c": 1 } } },
    ['metadata.labels["a.b/c"]: must be text (1); put it in quotes: it is a number now'],
  ],
];
for (const [name, value, want] of errorCases) {
  test(`error: ${name}`, () => assert.deepEqual(checkObject("Pod", value).errors.map(formatProblem), want));
}

test("the value of a variable is never shown", () => {
  const { errors } = checkObject("Pod", podWith({ env: [{ name: "PIN", value: 48151623 }] }));
  assert.deepEqual(errors.map(formatProblem), [
    "spec.containers[0].env[0].value: must be text; put it in quotes: it is a number now",
  ]);
});

test("a number is a quantity", () => {
  assert.deepEqual(checkObject("Pod", podWith({ resources: { limits: { cpu: 0.5, memory: 1000 } } })).errors, []);
});

test("unknown fields are warnings with the nearest name", () => {
  const { errors, warnings } = checkObject("Pod", podWith({ comand: ["x"], zzz: 1 }, { __proto__x: 1 }));
  assert.deepEqual(errors, []);
  assert.deepEqual(warnings.map(formatProblem), [
    "spec.containers[0].comand: unknown field, ignored; did you mean command?",
    "spec.containers[0].zzz: unknown field, ignored; remove it",
    "spec.__proto__x: unknown field, ignored; remove it",
  ]);
});

test("a key named like a method of objects is an unknown field", () => {
  const { warnings } = checkObject("Pod", JSON.parse('{"spec":{"containers":[]},"__proto__":{"a":1},"constructor":1}'));
  assert.deepEqual(
    warnings.map((warning) => warning.path),
    ["__proto__", "constructor"],
  );
});

test("a map's key without a value is an empty text", () => {
  const value = { ...good, metadata: { labels: { role: null } } };
  assert.deepEqual(checkObject("Pod", value).errors, []);
  assert.deepEqual(normalizeObject("Pod", value), { ...good, metadata: { labels: { role: "" } } });
});

test("a file full of mistakes makes a short report", () => {
  const containers = Array.from({ length: 5000 }, () => ({ nmae: 1, bad: 2 }));
  const { errors, warnings } = checkObject("Pod", { spec: { containers } });
  assert.ok(errors.length <= 50 && warnings.length <= 50);
});

test("a long value is cut in the message", () => {
  const { errors } = checkObject("Pod", podWith({}, { priority: "9".repeat(100_000) }));
  assert.ok(errors.map(formatProblem).join().length < 250);
});

test("normalizing makes quantities canonical, drops nulls and keeps unknown fields", () => {
  const value = {
    spec: { containers: [], overhead: { cpu: 1.5, memory: "1024Ki" }, hostname: null, odd: { a: null } },
  };
  assert.deepEqual(normalizeObject("Pod", value), {
    spec: { containers: [], overhead: { cpu: "1500m", memory: "1Mi" }, odd: { a: null } },
  });
});

test("pruning drops only what the schema does not know, and shares nothing", () => {
  const command = ["x"];
  const value = { spec: { containers: [{ name: "c", command, odd: 1 }] }, odd: 2 };
  const pruned = pruneObject("Pod", value);
  assert.deepEqual(pruned, { spec: { containers: [{ name: "c", command: ["x"] }] } });
  command.push("y");
  assert.deepEqual(pruned, { spec: { containers: [{ name: "c", command: ["x"] }] } });
});

test("kinds", () => {
  assert.equal(typeOfKind("v1", "Pod"), "Pod");
  assert.equal(typeOfKind("v2", "Pod"), undefined);
  assert.equal(typeOfKind("", "constructor"), undefined);
});

test("canonical JSON does not depend on the order of keys", () => {
  assert.equal(canonicalJson({ b: [1, { d: 1, c: undefined }], a: "x" }), '{"a":"x","b":[1,{"d":1}]}');
  assert.equal(canonicalJson({ a: 1, b: 2 }), canonicalJson({ b: 2, a: 1 }));
});
