import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { parseDocuments } from "../lib/yaml.ts";
import { type DecodedManifest, decodeManifest } from "./decode.ts";
import type { DocumentParser } from "./snapshot.ts";

const { signal } = new AbortController();
const clock = new FakeClock();
const parse: DocumentParser = (text, options) => parseDocuments(text, { ...options, clock });
const origin = { source: "file", location: "/etc/pods/a.yaml", nodeName: "Node1" } as const;

function decode(text: string, parser = parse): Promise<DecodedManifest> {
  return decodeManifest(text, origin, { parse: parser, signal });
}

function manifest(name: string, more = ""): string {
  return `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec:\n  containers: [{name: c, image: "i:1"}]\n${more}`;
}

function names({ pods }: DecodedManifest): (string | undefined)[] {
  return pods.map(({ pod }) => pod.metadata.name);
}

test("a pod is defaulted and made static", async () => {
  const { pods, problems } = await decode(manifest("web"));
  assert.deepEqual(problems, []);
  const pod = pods[0]?.pod;
  assert.match(pod?.metadata.uid ?? "", /^[0-9a-f]{32}$/);
  assert.deepEqual(pod, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "web-node1",
      namespace: "default",
      uid: pod?.metadata.uid,
      annotations: { "kubernetes.io/config.hash": pod?.metadata.uid, "kubernetes.io/config.source": "file" },
    },
    spec: {
      containers: [
        {
          name: "c",
          image: "i:1",
          imagePullPolicy: "IfNotPresent",
          terminationMessagePath: "/dev/termination-log",
          terminationMessagePolicy: "File",
        },
      ],
      restartPolicy: "Always",
      dnsPolicy: "ClusterFirst",
      schedulerName: "default-scheduler",
      terminationGracePeriodSeconds: 30,
      securityContext: {},
      enableServiceLinks: true,
      nodeName: "Node1",
      tolerations: [{ operator: "Exists", effect: "NoExecute" }],
    },
    status: { phase: "Pending" },
  });
});

test("JSON and YAML of one content are one pod, whatever the order of keys and the writing of amounts", async () => {
  const yaml = `
kind: Pod
apiVersion: v1
spec:
  containers:
  - resources: {limits: {cpu: 0.5, memory: 1024Mi}}
    image: i
    name: c
metadata:
  name: web
  labels:
`;
  const json = JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web" },
    spec: { containers: [{ name: "c", image: "i", resources: { limits: { cpu: "500m", memory: "1Gi" } } }] },
  });
  assert.deepEqual(await decode(yaml), await decode(json));
});

test("several documents, lists of pods and empty documents", async () => {
  const list = `kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: b}\n  spec: {containers: [{name: c, image: i}]}\n`;
  const items = `kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: d}, spec: {containers: [{name: c, image: i}]}}\n`;
  const decoded = await decode(`---\n---\n${manifest("a")}---\n${list}---\n# nothing\n---\n${items}`);
  assert.deepEqual(decoded.problems, []);
  assert.deepEqual(names(decoded), ["a-node1", "b-node1", "d-node1"]);
});

test("an empty list is an empty list, not a problem", async () => {
  assert.deepEqual(await decode("{apiVersion: v1, kind: PodList, items: []}"), { pods: [], objects: [], problems: [] });
});

test("a good document beside a bad one is used, and the problem names its line", async () => {
  const decoded = await decode(`${manifest("a")}---\n${manifest("B")}---\n${manifest("d")}`);
  assert.deepEqual(names(decoded), ["a-node1", "d-node1"]);
  assert.equal(decoded.problems.length, 1);
  assert.equal(decoded.problems[0]?.line, 7);
  assert.match(decoded.problems[0]?.message ?? "", /^metadata.name: is not a valid pod name/);
});

test("unknown fields are warnings of the pod, are dropped, and count for the UID", async () => {
  const plain = await decode(manifest("a"));
  const odd = await decode(manifest("a", "  restartPolice: Never\n"));
  assert.deepEqual(odd.problems, []);
  assert.deepEqual(odd.pods[0]?.warnings, ["spec.restartPolice: unknown field, ignored; did you mean restartPolicy?"]);
  assert.deepEqual(odd.pods[0]?.pod.spec, plain.pods[0]?.pod.spec);
  assert.notEqual(odd.pods[0]?.pod.metadata.uid, plain.pods[0]?.pod.metadata.uid);
});

test("a key that is set twice is a warning of the pod", async () => {
  const { pods } = await decode(manifest("a", "  hostNetwork: false\n  hostNetwork: true\n"));
  assert.match(pods[0]?.warnings[0] ?? "", /line 7: key "hostNetwork" is set twice/);
});

test("a misspelt kind of volume stays an empty directory with a warning", async () => {
  const { pods } = await decode(manifest("a", "  volumes: [{name: v, hostpath: {path: /x}}]\n"));
  assert.deepEqual(pods[0]?.pod.spec.volumes, [{ name: "v", emptyDir: {} }]);
  assert.deepEqual(pods[0]?.warnings, ["spec.volumes[0].hostpath: unknown field, ignored; did you mean hostPath?"]);
});

const broken: [string, string, RegExp][] = [
  ["nothing", "", /^the manifest is empty/],
  ["blanks and comments", "\n # hello\n", /^the manifest is empty/],
  ["no YAML", "a: [", /./],
  ["a text", "hello", /^a manifest must be an object/],
  ["a list", "[1, 2]", /^a manifest must be an object/],
  ["another kind", "{apiVersion: v1, kind: Service}", /^kind "Service" cannot be run; only Pod, ConfigMap, Secret/],
  ["another version", "{apiVersion: v2, kind: Pod}", /^apiVersion "v2", kind "Pod" is no pod/],
  ["no kind", "{a: 1}", /^apiVersion missing, kind missing is no pod/],
  [
    "a list in a list",
    "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: []}]}",
    /^kind "List" cannot be run/,
  ],
  ["a list without items", "{apiVersion: v1, kind: List}", /^a List must have a list of items/],
  [
    "no name",
    "{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: i}]}}",
    /^invalid pod: name is needed for the pod/,
  ],
  ["no spec", "{apiVersion: v1, kind: Pod, metadata: {name: a}}", /^spec.containers: is required/],
  ["a wrong type", manifest("a", "  hostNetwork: maybe\n"), /^spec.hostNetwork: must be true or false/],
  ["a service account", manifest("a", "  serviceAccountName: x\n"), /^static pods may not reference serviceaccounts/],
  ["an alias that holds itself", `${manifest("a")}odd: &x\n- *x\n`, /./],
  ["a deep nest", `{"apiVersion":"v1","kind":"Pod","x":${"[".repeat(5000)}${"]".repeat(5000)}}`, /nested too deeply/],
];
for (const [name, text, message] of broken) {
  test(`${name} is one problem and no pod`, async () => {
    const { pods, problems } = await decode(text);
    assert.deepEqual(pods, []);
    assert.equal(problems.length, 1, JSON.stringify(problems));
    assert.match(problems[0]?.message ?? "", message);
  });
}

test("all problems of a pod are told", async () => {
  const { problems } = await decode(
    "{apiVersion: v1, kind: Pod, metadata: {name: A}, spec: {restartPolicy: x, containers: [{name: B}]}}",
  );
  assert.equal(problems.length, 4);
});

test("two pods of one name: the first counts", async () => {
  const decoded = await decode(`${manifest("a")}---\n${manifest("a")}`);
  assert.equal(decoded.pods.length, 1);
  assert.match(decoded.problems[0]?.message ?? "", /^pod default\/a-node1 is named twice/);
});

test("a parser's error keeps its line", async () => {
  const failing: DocumentParser = () => Promise.reject(Object.assign(new Error("bad"), { line: 7 }));
  assert.deepEqual(await decode("x", failing), { pods: [], objects: [], problems: [{ line: 7, message: "bad" }] });
});

test("an abort is not a problem of the manifest", async () => {
  const controller = new AbortController();
  const aborting: DocumentParser = () => {
    controller.abort(new Error("stop"));
    return Promise.reject(controller.signal.reason);
  };
  await assert.rejects(decodeManifest("x", origin, { parse: aborting, signal: controller.signal }), /stop/);
});
