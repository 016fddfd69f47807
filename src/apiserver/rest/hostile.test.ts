import assert from "node:assert/strict";
import { test } from "node:test";
import { testApiServer } from "../../../test/support/local-api.ts";
import { BodyTooLarge, bareRequest } from "../../adapters/net/http-route.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { DEEPEST, measureJson } from "../schema/json-depth.ts";

const ADMIN = { name: "admin", groups: ["system:masters"] };
const MAPS = "/api/v1/namespaces/default/configmaps";

async function post(path: string, text: string, headers: Record<string, string> = {}) {
  // A busy machine may take longer to start the parser's thread than a request has.
  const server = await testApiServer(new FakeClock());
  try {
    const readBody = async (limit: number): Promise<Buffer> => {
      if (text.length > limit) throw new BodyTooLarge("TooLarge", "over the limit");
      return Buffer.from(text);
    };
    const method = headers["content-type"]?.includes("patch") ? "PATCH" : "POST";
    const { status, body } = await server.handle(bareRequest(method, path, { headers, readBody }), ADMIN);
    return { status, text: String(body) };
  } finally {
    await server.close();
  }
}

const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
const json = { "content-type": "application/json" };
const yaml = { "content-type": "application/yaml" };
const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${["b", "c", "d", "e", "f", "g", "h", "i"]
  .map((key, index) => `${key}: &${key} [${Array(9).fill(`*${"abcdefgh"[index]}`).join(",")}]`)
  .join("\n")}\n`;

const applied = { "content-type": "application/apply-patch+yaml" };
const emptyBomb = `data: {${Array.from({ length: 16 }, (_, i) => `a${i}: &a${i} [${i === 0 ? "{}" : `*a${i - 1},`.repeat(4)}]`).join(", ")}}`;
const sharedEnv = `metadata: {name: p}\nspec: {containers: [{env: &e [${"{},".repeat(4_000)}]}, ${"{env: *e},".repeat(1_500)}]}`;

const refused: readonly (readonly [name: string, body: string, headers: Record<string, string>, status: number])[] = [
  ["JSON that nests deeply", nested(100_000), json, 400],
  ["lists that nest deeply and never end", "[".repeat(2_000_000), json, 400],
  ["YAML that nests deeply", "[".repeat(100_000), yaml, 400],
  ["aliases of YAML that multiply", bomb, yaml, 400],
  ["empty collections of an apply that multiply", emptyBomb, applied, 400],
  ["aliases of one long list of a pod", sharedEnv, yaml, 400],
  ["YAML with too many elements", `data: [${"a,".repeat(60_000)}]`, yaml, 413],
  ["JSON with too many elements that is sent as YAML", `{"data":[${"{},".repeat(900_000)}{}]}`, yaml, 413],
  ["JSON with too many elements that is applied", `{"data":[${"{},".repeat(900_000)}{}]}`, applied, 413],
  ["a body over the limit", "x".repeat(4 << 20), json, 413],
  ["no object at all", "5", json, 400],
  ["a million empty objects", `{"data":[${"{},".repeat(900_000)}{}]}`, json, 413],
  [
    "a hundred thousand keys",
    JSON.stringify({
      data: Object.fromEntries(
        Array(100_000)
          .fill("")
          .map((_, i) => [i, ""]),
      ),
    }),
    json,
    413,
  ],
  ["a patch that nests deeply", nested(50_000), { "content-type": "application/merge-patch+json" }, 400],
];
for (const type of ["constructor", "__proto__"]) {
  test(`a patch of the type ${type} is refused`, async () => {
    const server = await testApiServer(new FakeClock());
    const readBody = async (): Promise<Buffer> => Buffer.from("{}");
    const request = bareRequest("PATCH", "/api/v1/namespaces/default", { headers: { "content-type": type }, readBody });
    assert.equal((await server.handle(request, ADMIN)).status, 415);
    await server.close();
  });
}
for (const [name, body, headers, status] of refused) {
  test(`${name} is refused with ${status}`, async () => {
    const path = headers["content-type"]?.includes("patch") ? `${MAPS}/kube-root-ca.crt` : MAPS;
    const answer = await post(path, body, headers);
    assert.equal(answer.status, status, answer.text.slice(0, 300));
    assert.ok(answer.text.length < 2000, "the answer does not repeat what was sent");
  });
}

test("empty collections of YAML that multiply are refused where any value may stand", async () => {
  const path = "/apis/apps/v1/namespaces/default/controllerrevisions";
  const { status, text } = await post(path, `metadata: {name: r}\nrevision: 1\n${emptyBomb}`, yaml);
  assert.equal(status, 400);
  assert.match(text, /yaml: document contains excessive aliasing/);
});

test("brackets in strings do not count", () => {
  const strings = JSON.stringify({ a: `${"[".repeat(5000)}\\"`, b: '"'.repeat(3000) });
  assert.deepEqual(measureJson(strings), { depth: 1, values: 3 });
  assert.equal(measureJson(nested(DEEPEST)).depth, DEEPEST);
  assert.equal(measureJson(nested(DEEPEST + 1)).depth, DEEPEST + 1);
});

test("a watch that nobody reads ends after a bounded number of bytes, and a long one comes in pieces", async () => {
  const server = await testApiServer(new FakeClock());
  const leaving = manyListeners();
  const ask = (method: string, path: string, body = "") =>
    server.handle(
      bareRequest(method, path, { signal: leaving.signal, headers: json, readBody: async () => Buffer.from(body) }),
      ADMIN,
    );
  try {
    const { body } = await ask("GET", `${MAPS}?watch=1&resourceVersion=0`);
    assert.ok(typeof body === "object" && Symbol.asyncIterator in body);
    const chunks = body[Symbol.asyncIterator]();
    await chunks.next();
    const fill = "y".repeat(500_000);
    for (let index = 0; index < 40; index++) {
      await ask("POST", MAPS, JSON.stringify({ metadata: { name: `big-${index}` }, data: { fill } }));
    }
    let total = 0;
    let longest = 0;
    for (;;) {
      const { value, done } = await chunks.next();
      if (done) break;
      total += value.length;
      longest = Math.max(longest, value.length);
    }
    assert.ok(total < 10 << 20, `${total} bytes waited`);
    assert.ok(longest < 1 << 20, `a piece of ${longest}`);
  } finally {
    leaving.abort();
    await server.close();
  }
});

const LONG_NAME = "x".repeat(600_000);
for (const validation of ["Ignore", "Warn", "Strict"]) {
  test(`400 doubled keys below a long name are cheap with fieldValidation=${validation}`, async () => {
    const doubled = `{${'"a":"","a":"",'.repeat(400)}"b":""}`;
    const body = `{"metadata":{"name":"m"},"unknown":{"${LONG_NAME}":${doubled}}}`;
    const { status, text } = await post(`${MAPS}?fieldValidation=${validation}`, body, json);
    assert.equal(status, validation === "Strict" ? 400 : 201, text.slice(0, 300));
    assert.ok(text.length < 100_000, `an answer of ${text.length}`);
  });
}

test("an answer names a thousand errors at most", async () => {
  const body = JSON.stringify({ metadata: { name: "p" }, spec: { containers: Array(20_000).fill({}) } });
  const { status, text } = await post("/api/v1/namespaces/default/pods", body, json);
  assert.equal(status, 422);
  assert.equal((JSON.parse(text) as { details: { causes: unknown[] } }).details.causes.length, 1_000);
});

test("an object does not grow beyond what Kubernetes stores, whichever way", async () => {
  const server = await testApiServer(new FakeClock());
  const ask = async (method: "POST" | "PATCH", path: string, body: unknown) => {
    const readBody = async (): Promise<Buffer> => Buffer.from(JSON.stringify(body));
    const type = method === "POST" ? "application/json" : "application/merge-patch+json";
    const request = bareRequest(method, path, { headers: { "content-type": type }, readBody });
    const { status, body: answer } = await server.handle(request, ADMIN);
    return status === 500 ? String((JSON.parse(String(answer)) as { message: string }).message) : status;
  };
  const PODS = "/api/v1/namespaces/default/pods";
  const pod = (length: number) => ({
    metadata: { name: "p" },
    spec: { containers: [{ name: "c", image: "x", args: ["y".repeat(length)] }] },
  });
  const tooLarge = "etcdserver: request is too large";
  assert.equal(await ask("POST", PODS, pod(1_600_000)), tooLarge);
  assert.equal(await ask("POST", PODS, pod(1_000_000)), 201);
  const status = { status: { message: "z".repeat(600_000) } };
  assert.equal(await ask("PATCH", `${PODS}/p/status`, status), tooLarge);
  await server.close();
});
