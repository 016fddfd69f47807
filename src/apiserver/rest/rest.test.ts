import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testApiServer } from "../../../test/support/local-api.ts";
import { bareRequest, type RouteAnswer } from "../../adapters/net/http-route.ts";
import { LogError, MemoryLog } from "../../adapters/objectlog/index.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { readApiPath } from "./api-path.ts";
import { negotiateOutput } from "./negotiate.ts";

const ADMIN = { name: "admin", groups: ["system:masters"] };
const MAPS = "/api/v1/namespaces/default/configmaps";

/** The parts of answers that these tests look at. */
interface Body {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly items?: readonly { readonly metadata: { readonly name: string } }[];
  readonly data?: unknown;
  readonly reason?: string;
  readonly message?: string;
  readonly status?: { readonly allowed?: boolean };
}

interface Asked {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly user?: typeof ADMIN;
}

async function bench(t: TestContext) {
  const clock = new FakeClock();
  const log = new MemoryLog();
  const server = await testApiServer(clock, { log });
  t.after(() => server.close());
  const ask = (
    method: string,
    path: string,
    { body, headers = {}, signal, user = ADMIN }: Asked = {},
  ): Promise<RouteAnswer> => {
    const text = typeof body === "string" ? body : body === undefined ? "" : JSON.stringify(body);
    const request = bareRequest(method, path, {
      headers,
      readBody: async () => Buffer.from(text),
      ...(signal && { signal }),
    });
    return server.handle(request, user);
  };
  const json = async (method: string, path: string, asked: Asked = {}) => {
    const answer = await ask(method, path, asked);
    // The answers of these tests are small and of known form.
    return {
      ...answer,
      value: JSON.parse(String(answer.body)) as Body,
    };
  };
  const create = (name: string, more: object = {}) =>
    json("POST", MAPS, { body: { metadata: { name, ...more }, data: { n: name } } });
  return { clock, log, server, ask, json, create };
}

const paths: readonly (readonly [string, string])[] = [
  ["/api/v1/pods", "|v1||pods||"],
  ["/api/v1/namespaces", "|v1||namespaces||"],
  ["/api/v1/namespaces/a", "|v1||namespaces|a|"],
  ["/api/v1/namespaces/a/status", "|v1||namespaces|a|status"],
  ["/api/v1/namespaces/a/finalize", "|v1||namespaces|a|finalize"],
  ["/api/v1/namespaces/a/pods", "|v1|a|pods||"],
  ["/api/v1/namespaces/a/pods/b/log", "|v1|a|pods|b|log"],
  ["/apis/apps/v1/namespaces/a/deployments/b/scale", "apps|v1|a|deployments|b|scale"],
  ["/apis/apps/v1", "none"],
  ["/api/v1/namespaces/a/pods/b/log/more", "none"],
  ["/other", "none"],
];
for (const [path, want] of paths) {
  test(`path ${path}`, () => {
    const found = readApiPath(path);
    const shown = found && [found.group, found.version, found.namespace, found.plural, found.name, found.subresource];
    assert.equal(shown?.join("|") ?? "none", want);
  });
}

const accepted: readonly (readonly [string, string])[] = [
  ["", "json object v1"],
  ["*/*", "json object v1"],
  ["application/vnd.kubernetes.protobuf,application/json", "json object v1"],
  ["application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "json table v1"],
  ["application/json;as=Table;v=v1beta1;g=meta.k8s.io", "json table v1beta1"],
  ["application/json;as=Table;v=v9;g=meta.k8s.io,application/json", "json object v1"],
  ["application/yaml", "yaml object v1"],
  ["application/json;q=0.1,application/yaml", "yaml object v1"],
  ["application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "json metadata v1"],
];
for (const [header, want] of accepted) {
  test(`accept ${header || "nothing"}`, () => {
    const { encoding, as, version } = negotiateOutput(header);
    assert.equal(`${encoding} ${as} ${version}`, want);
  });
}
test("what is not offered is not acceptable", () => {
  assert.throws(() => negotiateOutput("text/html"), /only the following media types are accepted/);
});

test("a created object is answered with 201, and read as JSON and as YAML", async (t) => {
  const { create, json, ask } = await bench(t);
  const made = await create("a");
  assert.equal(made.status, 201);
  assert.deepEqual((await json("GET", `${MAPS}/a`)).value, made.value);
  const yaml = await ask("GET", `${MAPS}/a`, { headers: { accept: "application/yaml" } });
  assert.equal(yaml.type, "application/yaml");
  assert.match(String(yaml.body), /^kind: ConfigMap\napiVersion: v1\n/);
});

test("a body may be YAML", async (t) => {
  const { json } = await bench(t);
  const headers = { "content-type": "application/yaml" };
  const made = await json("POST", MAPS, { body: "metadata: {name: yaml}\ndata: {mode: '0644'}\n", headers });
  assert.deepEqual(made.value.data, { mode: "0644" });
});

test("unknown and doubled fields are warned about, refused or ignored", async (t) => {
  const { ask } = await bench(t);
  const body = '{"metadata":{"name":"w"},"foo":1,"data":{"a":"1","a":"2"}}';
  const warned = await ask("POST", MAPS, { body });
  assert.equal(warned.status, 201);
  assert.equal(warned.headers?.warning, '299 - "unknown field \\"foo\\"", 299 - "duplicate field \\"data.a\\""');
  const strict = await ask("POST", `${MAPS}?fieldValidation=Strict`, { body });
  assert.equal(strict.status, 400);
  assert.match(String(strict.body), /strict decoding error: unknown field \\"foo\\", duplicate field \\"data.a\\"/);
  const ignored = await ask("POST", `${MAPS}?fieldValidation=Ignore&dryRun=All`, {
    body: '{"metadata":{"name":"i"},"foo":1}',
  });
  assert.equal(ignored.headers?.warning, undefined);
});

test("a list comes in pages that are one moment, though objects change in between", async (t) => {
  const { create, json } = await bench(t);
  for (const name of ["a", "b", "c", "d"]) await create(name);
  const first = await json("GET", `${MAPS}?limit=2`);
  const names = (value: Body): string[] =>
    (value.items ?? []).map(({ metadata }) => metadata.name).filter((name) => name.length === 1);
  assert.deepEqual(names(first.value), ["a", "b"]);
  assert.equal(first.value.metadata.remainingItemCount, 3);
  await json("DELETE", `${MAPS}/c`);
  await create("bb");
  const second = await json("GET", `${MAPS}?limit=9&continue=${String(first.value.metadata.continue)}`);
  assert.deepEqual(names(second.value), ["c", "d"]);
  assert.equal(second.value.metadata.resourceVersion, first.value.metadata.resourceVersion);
  assert.equal(second.value.metadata.continue, undefined);
});

test("a page of a moment that is not known any more is expired, and says how to go on", async (t) => {
  const { create, json } = await bench(t);
  for (const name of ["a", "b", "c"]) await create(name);
  const first = await json("GET", `${MAPS}?limit=1`);
  for (let n = 0; n < 200; n++) await create(`n${n}`, { annotations: { fill: "x".repeat(20_000) } });
  const late = await json("GET", `${MAPS}?limit=1&continue=${String(first.value.metadata.continue)}`);
  assert.equal(late.status, 410);
  assert.equal(late.value.reason, "Expired");
  const inconsistent = await json("GET", `${MAPS}?limit=1&continue=${String(late.value.metadata.continue)}`);
  assert.equal(inconsistent.status, 200);
});

test("a version that is yet to come is waited for, and then too large", async (t) => {
  const { clock, json } = await bench(t);
  const asking = json("GET", `${MAPS}?resourceVersion=99999&resourceVersionMatch=NotOlderThan`);
  await clock.advance(3000);
  const { status, value } = await asking;
  assert.equal(status, 504);
  assert.match(value.message ?? "", /Too large resource version: 99999, current: \d+/);
});

interface Line {
  readonly type: string;
  readonly object: Body;
}

async function linesOf(body: RouteAnswer["body"], count: number): Promise<Line[]> {
  const lines: Line[] = [];
  if (typeof body === "string" || body instanceof Uint8Array) throw new Error("not a stream");
  for await (const chunk of body) {
    for (const line of String(chunk).split("\n")) if (line !== "") lines.push(JSON.parse(line) as Line);
    if (lines.length >= count) break;
  }
  return lines;
}

test("a watch without a version begins with what is there, and ends when its time is over", async (t) => {
  const { clock, create, ask } = await bench(t);
  await create("a");
  const query = "watch=1&fieldSelector=metadata.name%3Da&timeoutSeconds=10&allowWatchBookmarks=true";
  const { body } = await ask("GET", `${MAPS}?${query}`);
  const reading = linesOf(body, 99);
  await clock.advance(10_000);
  const lines = await reading;
  assert.deepEqual(
    lines.map(({ type }) => type),
    ["ADDED", "BOOKMARK"],
  );
});

test("a watch with initial events marks their end", async (t) => {
  const { create, ask } = await bench(t);
  await create("a");
  const query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  const { body } = await ask("GET", `${MAPS}?${query}&fieldSelector=metadata.name%3Da`);
  const lines = await linesOf(body, 2);
  assert.equal(lines[1]?.type, "BOOKMARK");
  assert.deepEqual(lines[1]?.object.metadata.annotations, { "k8s.io/initial-events-end": "true" });
});

test("an object that ceases to match is deleted for the watch, as it was", async (t) => {
  const { create, json, ask } = await bench(t);
  const made = await create("a", { labels: { on: "yes" } });
  const version = String(made.value.metadata.resourceVersion);
  const { body } = await ask("GET", `${MAPS}?watch=1&labelSelector=on%3Dyes&resourceVersion=${version}`);
  const reading = linesOf(body, 2);
  const headers = { "content-type": "application/merge-patch+json" };
  const patch = (value: string | null) =>
    json("PATCH", `${MAPS}/a`, { body: { metadata: { labels: { on: value } } }, headers });
  await patch("no");
  await patch("yes");
  const lines = await reading;
  assert.deepEqual(
    lines.map(({ type, object }) => [type, object.metadata.labels]),
    [
      ["DELETED", { on: "yes" }],
      ["ADDED", { on: "yes" }],
    ],
  );
});

test("a watch from a version that nobody knows any more is an expired event", async (t) => {
  const { create, ask } = await bench(t);
  for (let n = 0; n < 200; n++) await create(`n${n}`, { annotations: { fill: "x".repeat(20_000) } });
  const { status, body } = await ask("GET", `${MAPS}?watch=1&resourceVersion=5`);
  const [line] = await linesOf(body, 1);
  assert.equal(status, 200);
  assert.equal(line?.type, "ERROR");
  assert.equal(line?.object.reason, "Expired");
});

test("a client that leaves ends its watch", async (t) => {
  const { create, ask } = await bench(t);
  const made = await create("a");
  const version = String(made.value.metadata.resourceVersion);
  const leaving = manyListeners();
  const { body } = await ask("GET", `${MAPS}?watch=1&resourceVersion=${version}`, { signal: leaving.signal });
  const reading = linesOf(body, 99);
  await create("b");
  leaving.abort();
  const lines = await reading;
  await create("c");
  assert.deepEqual(
    lines.map(({ type, object }) => `${type} ${String(object.metadata.name)}`),
    ["ADDED b"],
  );
});

test("those who are no administrators may ask who they are, and nothing else", async (t) => {
  const { ask, json } = await bench(t);
  const user = { name: "system:serviceaccount:default:default", groups: ["system:serviceaccounts"] };
  const refused = await json("GET", "/api/v1/namespaces/default/pods", { user });
  assert.equal(refused.status, 403);
  assert.equal(
    refused.value.message,
    'pods is forbidden: User "system:serviceaccount:default:default" cannot list resource "pods" in API group "" in the namespace "default"',
  );
  const review = await json("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
    user,
    body: { spec: { resourceAttributes: { verb: "get", resource: "pods" } } },
  });
  assert.equal(review.status, 201);
  assert.equal(review.value.status?.allowed, false);
  assert.equal((await ask("GET", "/apis", { user })).status, 200);
});

test("a disk that fails is an internal error that names the file, and the server goes on", async (t) => {
  const { log, json, create } = await bench(t);
  log.failure = new LogError("NoSpace", "write /state/objects.log: no space left on device");
  const refused = await create("full");
  assert.equal(refused.status, 500);
  assert.equal(refused.value.message, "Internal error occurred: write /state/objects.log: no space left on device");
  assert.equal((await json("GET", `${MAPS}/full`)).status, 404);
  log.failure = undefined;
  assert.equal((await create("full")).status, 201);
});

test("a body that is too large, or no JSON, is refused", async (t) => {
  const { server, json } = await bench(t);
  const { BodyTooLarge } = await import("../../adapters/net/http-route.ts");
  const request = bareRequest("POST", MAPS, {
    readBody: () => Promise.reject(new BodyTooLarge("TooLarge", "over")),
  });
  assert.equal((await server.handle(request, ADMIN)).status, 413);
  assert.equal((await json("POST", MAPS, { body: "{" })).status, 400);
  const type = { "content-type": "text/html" };
  assert.equal((await json("POST", MAPS, { body: {}, headers: type })).status, 415);
});

test("OpenAPI v2 is there for kubectl, which validates lists and unknown kinds with it", async (t) => {
  const { ask, json } = await bench(t);
  assert.equal((await json("GET", "/openapi/v2")).status, 200);
  const accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
  const { status, type, body } = await ask("GET", "/openapi/v2", { headers: { accept } });
  assert.equal(status, 200);
  // Go parses the answer's type, and an `@` is not allowed in one.
  assert.equal(type, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  assert.match(Buffer.from(body as Uint8Array).toString("latin1"), /^\n\x032\.0\x12.*Kubernetes/s);
});

test("an administrator may act as somebody else, who may do nothing; nobody else may", async (t) => {
  const { json } = await bench(t);
  const as = { "impersonate-user": "jane", "impersonate-group": "dev, ops" };
  const refused = await json("GET", MAPS, { headers: as });
  assert.equal(refused.status, 403);
  assert.match(refused.value.message ?? "", /User "jane" cannot list resource "configmaps"/);
  const master = { ...as, "impersonate-group": "system:masters" };
  assert.equal((await json("GET", MAPS, { headers: master })).status, 200);
  const other = await json("GET", MAPS, { headers: master, user: { name: "joe", groups: [] } });
  assert.equal(other.status, 403);
  assert.match(other.value.message ?? "", /User "joe" cannot impersonate resource "users"/);
  assert.equal((await json("GET", MAPS, { headers: { "impersonate-group": "dev" } })).status, 400);
});

const REFUSED_LISTS: readonly (readonly [string, RegExp])[] = [
  ["limit=-1", /limit: Invalid value: -1: must be greater than or equal to 0/],
  ["resourceVersionMatch=Exact&resourceVersion=0", /forbidden for resourceVersion/],
  ["watch=true&resourceVersionMatch=NotOlderThan", /forbidden for watch unless sendInitialEvents is provided/],
  ["watch=true&sendInitialEvents=true&allowWatchBookmarks=true", /requires setting resourceVersionMatch/],
  [
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    /sendInitialEvents requires allowWatchBookmarks/,
  ],
];
for (const [query, words] of REFUSED_LISTS) {
  test(`a list with ?${query} is invalid`, async (t) => {
    const { json } = await bench(t);
    const { status, value } = await json("GET", `${MAPS}?${query}`);
    assert.equal(status, 422);
    assert.match(value.message ?? "", words);
  });
}

test("a pod tolerates a node that is absent for five minutes, unless it says for how long itself", async (t) => {
  const { json } = await bench(t);
  const path = "/api/v1/namespaces/default/pods";
  const tolerationsOf = async (name: string, tolerations: readonly object[]) => {
    const spec = { containers: [{ name: "c", image: "x" }], tolerations };
    const { value } = await json("POST", path, { body: { metadata: { name }, spec } });
    const made = (value as unknown as { spec: { tolerations?: { key?: string; effect?: string }[] } }).spec;
    return (made.tolerations ?? []).map(({ key = "", effect = "" }) => `${key.split("/")[1] ?? ""} ${effect}`);
  };
  const added = ["not-ready NoExecute", "unreachable NoExecute"];
  assert.deepEqual(await tolerationsOf("a", []), added);
  const notReady = { key: "node.kubernetes.io/not-ready", operator: "Exists" };
  assert.deepEqual(await tolerationsOf("b", [{ ...notReady, effect: "NoSchedule" }]), [
    "not-ready NoSchedule",
    ...added,
  ]);
  assert.deepEqual(await tolerationsOf("c", [{ ...notReady, effect: "NoExecute" }]), [
    "not-ready NoExecute",
    "unreachable NoExecute",
  ]);
  assert.deepEqual(await tolerationsOf("d", [{ operator: "Exists" }]), [" "]);
});

test("a claim gets the default class only if it names none, the empty one included", async (t) => {
  const { json } = await bench(t);
  const annotations = { "storageclass.kubernetes.io/is-default-class": "true" };
  await json("POST", "/apis/storage.k8s.io/v1/storageclasses", {
    body: { metadata: { name: "fast", annotations }, provisioner: "example.com/disks" },
  });
  const classOf = async (name: string, more: object) => {
    const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...more };
    const path = "/api/v1/namespaces/default/persistentvolumeclaims";
    const { status, value } = await json("POST", path, { body: { metadata: { name }, spec } });
    const made = value as unknown as { spec?: { storageClassName?: string }; message?: string };
    return status === 201 ? made.spec?.storageClassName : made.message;
  };
  assert.equal(await classOf("a", {}), "fast");
  assert.equal(await classOf("b", { storageClassName: "" }), "");
  assert.equal(await classOf("c", { storageClassName: "slow" }), "slow");
  assert.match(
    (await classOf("d", { accessModes: ["ReadAlways"] })) ?? "",
    /accessModes: Unsupported value: "ReadAlways"/,
  );
});
