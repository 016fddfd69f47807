import assert from "node:assert/strict";
import { test } from "node:test";
import { dispatcher } from "../adapters/net/http-dispatch.ts";
import { bareRequest, type ClientCertificate, type RouteRequest } from "../adapters/net/http-route.ts";
import { FakeClock } from "../lib/clock.ts";
import { fixed } from "../lib/live.ts";
import { silent } from "../lib/log.ts";
import { accessOf } from "./access.ts";
import { Authenticator, type TokenReviewer, type User } from "./authenticate.ts";
import { type AccessQuestion, Authorizer } from "./authorize.ts";
import { accessGuard } from "./guard.ts";

const accesses = [
  { request: "GET /pods", want: "get pods proxy" },
  { request: "GET /pods/", want: "get pods proxy" },
  { request: "GET /podsx", want: "get proxy" },
  { request: "GET /runningpods/", want: "get pods proxy" },
  { request: "GET /healthz/ping", want: "get healthz proxy" },
  { request: "GET /configz", want: "get configz proxy" },
  { request: "POST /stats/summary", want: "create stats" },
  { request: "GET /metrics/cadvisor", want: "get metrics" },
  { request: "GET /logs/syslog", want: "get log" },
  { request: "POST /checkpoint/a/b/c", want: "create checkpoint" },
  { request: "GET /statusz", want: "get statusz" },
  { request: "GET /flagz", want: "get configz" },
  { request: "GET /containerLogs/a/b/c", want: "get proxy" },
  { request: "GET /exec/a/b/c", want: "create proxy" },
  { request: "POST /exec/a/b/c", want: "create proxy" },
  { request: "GET /attach/a/b/c", want: "create proxy" },
  { request: "GET /portForward/a/b", want: "create proxy" },
  { request: "HEAD /run/a/b/c", want: "create proxy" },
  { request: "PUT /debug/flags/v", want: "update proxy" },
  { request: "HEAD /pods", want: " pods proxy" },
  { request: "OPTIONS /metrics", want: " metrics" },
];
for (const { request, want } of accesses) {
  test(`access of ${request}`, () => {
    const [method = "", path = ""] = request.split(" ");
    const { verb, subresources } = accessOf(method, path);
    assert.equal([verb, ...subresources].join(" "), want);
  });
}

const certificate = (more: Partial<ClientCertificate> = {}): ClientCertificate => ({
  commonName: "ann",
  organizations: ["dev"],
  uids: [],
  fingerprint: "ab",
  isTrusted: () => true,
  ...more,
});

function site(options: { anonymous?: boolean; reviewer?: TokenReviewer | undefined } = {}) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const reviewer: TokenReviewer = {
    review: async (token) => {
      asked.push(token);
      if (token === "slow") await clock.sleep(60_000);
      if (token === "broken") throw new Error("down");
      return token === "good" ? { name: "bob", groups: ["ops"] } : undefined;
    },
  };
  const authenticator = new Authenticator(
    { clock, log: silent, reviewer: "reviewer" in options ? options.reviewer : reviewer },
    fixed({ anonymous: options.anonymous ?? false, tokenTtlMs: 120_000 }),
  );
  const ask = (request: Partial<RouteRequest>): Promise<User | undefined> =>
    authenticator.authenticate(bareRequest("GET", "/pods", request));
  return { clock, asked, ask };
}

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const protocol = (token: string, more = ", v4.channel.k8s.io") => ({
  headers: {
    "sec-websocket-protocol": `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}${more}`,
  },
});
const ANONYMOUS = "system:anonymous system:unauthenticated";

const people: { name: string; request: Partial<RouteRequest>; anonymous?: boolean; want: string | undefined }[] = [
  { name: "a certificate", request: { peer: certificate() }, want: "ann dev system:authenticated" },
  { name: "a certificate of another CA", request: { peer: certificate({ isTrusted: () => false }) }, want: undefined },
  {
    name: "a certificate of another CA, anonymous on",
    request: { peer: certificate({ isTrusted: () => false }) },
    anonymous: true,
    want: undefined,
  },
  { name: "a certificate without a name", request: { peer: certificate({ commonName: "" }) }, want: undefined },
  {
    name: "a certificate without a name, anonymous on",
    request: { peer: certificate({ commonName: "" }) },
    anonymous: true,
    want: ANONYMOUS,
  },
  { name: "a token", request: bearer("good"), want: "bob ops system:authenticated" },
  {
    name: "a token, scheme in capitals",
    request: { headers: { authorization: "BEARER good" } },
    want: "bob ops system:authenticated",
  },
  { name: "a bad token", request: bearer("bad"), want: undefined },
  { name: "a bad token, anonymous on", request: bearer("bad"), anonymous: true, want: undefined },
  { name: "a token that is too long", request: bearer("x".repeat(70_000)), anonymous: true, want: undefined },
  { name: "a token while the server is down", request: bearer("broken"), anonymous: true, want: undefined },
  { name: "a token as sub-protocol", request: protocol("good"), want: "bob ops system:authenticated" },
  { name: "a token as the only sub-protocol", request: protocol("good", ""), want: undefined },
  {
    name: "a bad certificate with a good token",
    request: { peer: certificate({ isTrusted: () => false }), ...bearer("good") },
    want: "bob ops system:authenticated",
  },
  { name: "a password", request: { headers: { authorization: "Basic eDp5" } }, want: undefined },
  { name: "nobody", request: {}, want: undefined },
  { name: "nobody, anonymous on", request: {}, anonymous: true, want: ANONYMOUS },
];
for (const c of people) {
  test(`who is it: ${c.name}`, async () => {
    const user = await site({ anonymous: c.anonymous ?? false }).ask(c.request);
    assert.equal(user && [user.name, ...user.groups].join(" "), c.want);
  });
}

test("a token of over 64 KiB is invalid without a review", async () => {
  const { ask, asked } = site({ anonymous: true });
  assert.equal(await ask(bearer("x".repeat(65_537))), undefined);
  assert.deepEqual(asked, []);
});

test("a certificate's uid and fingerprint are in the user's extra", async () => {
  const user = await site().ask({ peer: certificate({ uids: ["7"] }) });
  assert.equal(user?.uid, "7");
  assert.deepEqual(user?.extra, { "authentication.kubernetes.io/credential-id": ["X509SHA256=ab"] });
});

test("token reviews are cached for their TTL, valid or not, failures are not", async () => {
  const { ask, asked, clock } = site();
  for (const token of ["good", "bad", "broken"]) {
    await ask(bearer(token));
    await ask(bearer(token));
  }
  assert.deepEqual(asked, ["good", "bad", "broken", "broken"]);
  await clock.advance(120_001);
  await ask(bearer("good"));
  assert.equal(asked.at(-1), "good");
});

test("concurrent requests with one token share one review", async () => {
  const { ask, asked } = site();
  await Promise.all([1, 2, 3].map(() => ask(bearer("good"))));
  assert.deepEqual(asked, ["good"]);
});

test("a token review times out after 30 s", async () => {
  const { clock } = site();
  const controller = { aborted: false };
  const reviewer: TokenReviewer = {
    review: (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => {
          controller.aborted = true;
          reject(signal.reason as Error);
        }),
      ),
  };
  const authenticator = new Authenticator({ clock, log: silent, reviewer }, fixed({ anonymous: true, tokenTtlMs: 1 }));
  const answer = authenticator.authenticate(bareRequest("GET", "/pods", bearer("x")));
  await clock.advance(30_000);
  assert.equal(await answer, undefined);
  assert.equal(controller.aborted, true);
});

function authorizer(
  answer: (question: AccessQuestion) => boolean | Error,
  mode: "AlwaysAllow" | "Webhook" = "Webhook",
) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const reviewer = {
    isAllowed: async (question: AccessQuestion) => {
      asked.push(`${question.verb} ${question.subresource}`);
      const result = answer(question);
      if (result instanceof Error) throw result;
      return result;
    },
  };
  const options = fixed({ mode, allowedTtlMs: 300_000, deniedTtlMs: 30_000 });
  return { clock, asked, authorizer: new Authorizer({ clock, reviewer }, options) };
}

test("access reviews are cached: allowed for 5 minutes, denied for 30 seconds; very long ones are not", async () => {
  const { clock, asked, authorizer: it } = authorizer(({ verb }) => verb === "get");
  const { signal } = new AbortController();
  const ask = (verb: string, name = "ann") =>
    it.isAllowed({ user: { name, groups: [] }, verb, subresource: "proxy" }, { signal });
  for (const verb of ["get", "get", "create", "create"]) await ask(verb);
  assert.deepEqual(asked, ["get proxy", "create proxy"]);
  await clock.advance(30_001);
  for (const verb of ["get", "create"]) await ask(verb);
  assert.deepEqual(asked.slice(2), ["create proxy"]);
  await clock.advance(300_001);
  await ask("get");
  await ask("get", "x".repeat(20_000));
  await ask("get", "x".repeat(20_000));
  assert.equal(asked.length, 6);
});

const guarded: {
  name: string;
  user?: User;
  allow: (q: AccessQuestion) => boolean | Error;
  want: string;
  asked: string[];
}[] = [
  { name: "nobody", allow: () => true, want: "401 Unauthorized", asked: [] },
  {
    name: "allowed by the finer",
    user: { name: "a", groups: [] },
    allow: () => true,
    want: "200 pods",
    asked: ["get pods"],
  },
  {
    name: "allowed by proxy",
    user: { name: "a", groups: [] },
    allow: ({ subresource }) => subresource === "proxy",
    want: "200 pods",
    asked: ["get pods", "get proxy"],
  },
  {
    name: "denied",
    user: { name: "a", groups: [] },
    allow: () => false,
    want: "403 Forbidden (user=a, verb=get, resource=nodes, subresource(s)=[pods proxy])",
    asked: ["get pods", "get proxy"],
  },
  {
    name: "nobody can tell",
    user: { name: "a", groups: [] },
    allow: () => new Error("down"),
    want: "500 Authorization error (user=a, verb=get, resource=nodes, subresource(s)=[pods proxy])",
    asked: ["get pods"],
  },
];
for (const c of guarded) {
  test(`guard: ${c.name}`, async () => {
    const { authorizer: it, asked } = authorizer(c.allow);
    let worked = 0;
    const handle = () => {
      worked++;
      return { status: 200, body: "pods" };
    };
    const guard = accessGuard({ authenticator: { authenticate: async () => c.user }, authorizer: it, log: silent });
    const dispatch = dispatcher([{ methods: ["GET"], path: "/pods", handle }], guard);
    const raw = { headers: {}, readBody: async () => Buffer.alloc(0), signal: new AbortController().signal };
    const { status, body } = await dispatch({ method: "GET", target: "/pods", ...raw });
    assert.equal(`${status} ${body}`, c.want);
    assert.deepEqual(asked, c.asked);
    assert.equal(worked, status === 200 ? 1 : 0);
    // Paths that do not exist are told to everybody, wrong methods only to those who may.
    assert.equal((await dispatch({ method: "GET", target: "/nope", ...raw })).status, 404);
    const wrong = (await dispatch({ method: "DELETE", target: "/pods", ...raw })).status;
    assert.equal(wrong, status === 200 ? 405 : status);
  });
}

test("guard: a request whose client left is not answered as a failed review", async () => {
  const controller = new AbortController();
  const authenticate = async (): Promise<User> => ({ name: "a", groups: [] });
  const isAllowed = async (): Promise<boolean> => {
    controller.abort(new Error("client left"));
    throw controller.signal.reason;
  };
  const guard = accessGuard({ authenticator: { authenticate }, authorizer: { isAllowed }, log: silent });
  const { signal } = controller;
  await assert.rejects(async () => guard(bareRequest("GET", "/pods", { signal })), /client left/);
});

test("AlwaysAllow reviews nothing", async () => {
  const { authorizer: it, asked } = authorizer(() => false, "AlwaysAllow");
  const { signal } = new AbortController();
  assert.equal(
    await it.isAllowed({ user: { name: "a", groups: [] }, verb: "get", subresource: "x" }, { signal }),
    true,
  );
  assert.deepEqual(asked, []);
});

test("a path that is named like an inherited property needs proxy, as any other", () => {
  assert.deepEqual(accessOf("GET", "/constructor/x"), { verb: "get", subresources: ["proxy"] });
});
