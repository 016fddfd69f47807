import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { parseDocuments } from "../lib/yaml.ts";
import { type DecodedManifest, decodeManifest } from "./decode.ts";

const { signal } = new AbortController();
const clock = new FakeClock();
const origin = { source: "file", location: "/etc/pods/a.yaml", nodeName: "n" } as const;

function decode(text: string, hasApiServer = false): Promise<DecodedManifest> {
  return decodeManifest(text, origin, {
    parse: (part, options) => parseDocuments(part, { ...options, clock }),
    signal,
    hasApiServer,
  });
}

const web = (spec: string): string =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: i}], ${spec}}\n`;

describe("objects beside pods", () => {
  test("a ConfigMap and a Secret stand in the default namespace unless they say another", async () => {
    const { objects, problems } = await decode(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: green, size: "7"}
binaryData: {raw: AP8K}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: other}
type: Opaque
data: {user: bWU=, both: b2xk}
stringData: {both: new}
`);
    assert.deepEqual(problems, []);
    assert.deepEqual(objects, [
      {
        kind: "ConfigMap",
        object: {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: "settings", namespace: "default" },
          data: { colour: "green", size: "7" },
          binaryData: { raw: "AP8K" },
        },
      },
      {
        kind: "Secret",
        object: {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name: "login", namespace: "other" },
          type: "Opaque",
          data: { user: "bWU=", both: "bmV3" },
        },
      },
    ]);
  });

  test("lists hold them too, and need not name their kind where the list does", async () => {
    const list = `{apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: a}}]}`;
    const mixed = `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: b}}]}`;
    const { objects, problems } = await decode(`${list}\n---\n${mixed}`);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      objects.map(({ kind, object }) => `${kind} ${object.metadata.name}`),
      ["ConfigMap a", "Secret b"],
    );
  });

  const broken: [string, string, RegExp][] = [
    ["no name", "{apiVersion: v1, kind: ConfigMap}", /name is needed/],
    [
      "a name that is none",
      "{apiVersion: v1, kind: Secret, metadata: {name: A_b}}",
      /metadata.name: is not a valid name/,
    ],
    [
      "a key with ..",
      '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {"..": x}}',
      /key "\.\." is no file name/,
    ],
    [
      "a key with /",
      '{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {"a/b": x}}',
      /key "a\/b" is no file/,
    ],
    [
      "a key in both",
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: x}, binaryData: {k: eA==}}",
      /in data already/,
    ],
    ["no base64", "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: '***'}}", /data/],
    [
      "too much",
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"${"x".repeat(1024 * 1024 + 1)}"}}`,
      /at most 1 MiB/,
    ],
  ];
  for (const [name, text, words] of broken) {
    test(`${name} is one problem and no object`, async () => {
      const { objects, problems } = await decode(text);
      assert.deepEqual(objects, []);
      assert.equal(problems.length, 1, JSON.stringify(problems).slice(0, 500));
      assert.match(problems[0]?.message ?? "", words);
    });
  }

  test("a value in the wrong place is not shown: it may be a password", async () => {
    const { problems } = await decode("{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: hunter*2}}");
    assert.doesNotMatch(JSON.stringify(problems), /hunter/);
  });

  test("3,000 keys are taken", async () => {
    const data = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`key-${i}`, String(i)]));
    const { objects, problems } = await decode(
      JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "many" }, data }),
    );
    assert.deepEqual([objects.length, problems], [1, []]);
  });

  test("one name twice: the first counts; a Secret may have the name of a ConfigMap", async () => {
    const one = (kind: string): string => `{apiVersion: v1, kind: ${kind}, metadata: {name: a}}`;
    const { objects, problems } = await decode([one("ConfigMap"), one("Secret"), one("ConfigMap")].join("\n---\n"));
    assert.equal(objects.length, 2);
    assert.match(problems[0]?.message ?? "", /^ConfigMap default\/a is named twice/);
  });
});

describe("references to objects", () => {
  const references = [
    "volumes: [{name: v, configMap: {name: a}}]",
    "volumes: [{name: v, secret: {secretName: a}}]",
    "volumes: [{name: v, projected: {sources: [{secret: {name: a}}, {configMap: {name: b}}]}}]",
    "imagePullSecrets: [{name: a}]",
  ];
  for (const spec of references) {
    test(`without an API server a pod may have ${spec}; with one a static pod may not`, async () => {
      const alone = await decode(web(spec));
      assert.deepEqual([alone.pods.length, alone.problems], [1, []]);
      const joined = await decode(web(spec), true);
      assert.equal(joined.pods.length, 0);
      assert.match(joined.problems[0]?.message ?? "", /^static pods may not reference/);
    });
  }

  test("what only an API server has is refused in any case", async () => {
    for (const spec of [
      "volumes: [{name: v, persistentVolumeClaim: {claimName: a}}]",
      "volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]",
    ]) {
      assert.match((await decode(web(spec))).problems[0]?.message ?? "", /^static pods may not reference/);
    }
  });

  test("with an API server its objects count, and manifests hold only pods", async () => {
    const { problems } = await decode("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", true);
    assert.match(problems[0]?.message ?? "", /^kind "ConfigMap" cannot be run; only Pod and lists/);
  });
});
