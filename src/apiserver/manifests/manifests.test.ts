import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testApiServer } from "../../../test/support/local-api.ts";
import { bareRequest } from "../../adapters/net/http-route.ts";
import { FakeClock } from "../../lib/clock.ts";

async function bench(t: TestContext) {
  const server = await testApiServer(new FakeClock());
  t.after(() => server.close());
  return async (method: string, path: string, given: string | { body: string; accept: string } = "") => {
    const { body, accept } = typeof given === "string" ? { body: given, accept: "" } : given;
    const headers = { accept };
    const request = bareRequest(method, path, { headers, readBody: async () => Buffer.from(body) });
    const answer = await server.handle(request, { name: "root", groups: ["system:masters"] });
    return { status: answer.status, body: String(answer.body) };
  };
}

const pod = (name: string, image = "nginx"): string =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {containers: [{name: c, image: ${image}}]}\n`;

test("a pod is created, changed and left alone, and listed", async (t) => {
  const ask = await bench(t);
  assert.deepEqual(await ask("POST", "/manifests", pod("web")), { status: 200, body: "pod/web created\n" });
  assert.deepEqual(await ask("POST", "/manifests", pod("web")), { status: 200, body: "pod/web unchanged\n" });
  assert.deepEqual(await ask("POST", "/manifests", pod("web", "httpd")), { status: 200, body: "pod/web configured\n" });
  assert.deepEqual(await ask("GET", "/manifests"), { status: 200, body: "default/web Pending 0/1\n" });
});

test("of several documents those that are right are accepted, and the others say why", async (t) => {
  const ask = await bench(t);
  const wrong = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: [{name: c, imgae: x}]}\n";
  const { status, body } = await ask("POST", "/manifests", `${pod("a")}---\n${wrong}---\n${pod("b")}`);
  assert.equal(status, 422);
  assert.equal(
    body,
    [
      "pod/a created",
      "pod/bad refused (line 6)",
      "  failed to create typed patch object (default/bad; /v1, Kind=Pod): .spec.containers[0].imgae: field not declared in schema",
      "pod/b created",
      "",
    ].join("\n"),
  );
});

test("a text that expands to too many values, or has them, is refused as a whole", async (t) => {
  const ask = await bench(t);
  const shared = `apiVersion: v1\nkind: List\nx: &x [${"{},".repeat(400)}]\nitems: [${"*x,".repeat(400)}]\n`;
  assert.equal((await ask("POST", "/manifests", shared)).status, 400);
  const many = `apiVersion: v1\nkind: List\nitems: [${"{},".repeat(8_000)}]\n`;
  assert.equal((await ask("DELETE", "/manifests", `${many}---\n${many}---\n${many}---\n${many}`)).status, 413);
});

test("a missing value is named by its field", async (t) => {
  const ask = await bench(t);
  const { body } = await ask(
    "POST",
    "/manifests",
    "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c}]}\n",
  );
  assert.match(body, /^pod\/x refused \(line 1\)\n {2}spec\.containers\[0\]\.image: Required value\n$/);
});

test("a PodList and other kinds are taken, and what is not served is refused", async (t) => {
  const ask = await bench(t);
  const list = JSON.stringify({
    apiVersion: "v1",
    kind: "PodList",
    items: [
      { apiVersion: "v1", kind: "Pod", metadata: { name: "l" }, spec: { containers: [{ name: "c", image: "x" }] } },
    ],
  });
  assert.equal((await ask("POST", "/manifests", list)).body, "pod/l created\n");
  const map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: b}\n";
  assert.equal((await ask("POST", "/manifests", map)).body, "configmap/m created\n");
  const ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\n";
  assert.match(
    (await ask("POST", "/manifests", ingress)).body,
    /ingress\/i refused .*\n.*"networking.k8s.io\/v1" "Ingress" is not served here/,
  );
});

test("deletion is by the manifest, or by the path of one pod", async (t) => {
  const ask = await bench(t);
  await ask("POST", "/manifests", `${pod("a")}---\n${pod("b")}`);
  assert.equal((await ask("DELETE", "/manifests", pod("a"))).body, "pod/a deleted\n");
  assert.equal((await ask("DELETE", "/manifests/default/b")).body, "pod/b deleted\n");
  assert.equal((await ask("DELETE", "/manifests/b")).status, 404);
  assert.equal((await ask("GET", "/manifests")).body, "");
});

test("the answer may be JSON, and a text that is no YAML is refused with its line", async (t) => {
  const ask = await bench(t);
  const { body } = await ask("POST", "/manifests", { body: pod("a"), accept: "application/json" });
  assert.deepEqual(JSON.parse(body), {
    objects: [{ object: "pod/a", namespace: "default", line: 1, outcome: "created" }],
  });
  const broken = await ask("POST", "/manifests", "a: [");
  assert.equal(broken.status, 400);
  assert.match(broken.body, /read manifest: line 1, column/);
});
