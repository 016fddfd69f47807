import assert from "node:assert/strict";
import { test } from "node:test";
import { testApiServer } from "../../../test/support/local-api.ts";
import { BodyTooLarge, bareRequest } from "../../adapters/net/http-route.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock, SystemClock } from "../../lib/clock.ts";
import { DEEPEST, isTooDeep } from "../schema/json-depth.ts";

const ADMIN = { name: "admin", groups: ["system:masters"] };
const MAPS = "/api/v1/namespaces/default/configmaps";

async function post(path: string, text: string, headers: Record<string, string> = {}) {
  const server = await testApiServer(new SystemClock());
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

const refused: readonly (readonly [name: string, body: string, headers: Record<string, string>, status: number])[] = [
  ["JSON that nests deeply", nested(100_000), json, 400],
  ["lists that nest deeply and never end", "[".repeat(2_000_000), json, 400],
  ["YAML that nests deeply", "[".repeat(100_000), yaml, 400],
  ["aliases of YAML that multiply", bomb, yaml, 400],
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

test("brackets in strings do not count", () => {
  assert.equal(isTooDeep(JSON.stringify({ a: `${"[".repeat(5000)}\\"`, b: '"'.repeat(3000) })), false);
  assert.equal(isTooDeep(nested(DEEPEST)), false);
  assert.equal(isTooDeep(nested(DEEPEST + 1)), true);
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
