import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { FakePage } from "../../test/support/fake-page.ts";
import { dispatcher, type Guard } from "../adapters/net/http-dispatch.ts";
import { bareRequest, type RouteAnswer, textAnswer } from "../adapters/net/http-route.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import type { OverviewLine, PageRefusal, PodLine } from "../model/page-lines.ts";
import type { PageParts } from "./compose.ts";
import { logAnswer } from "./container-routes.ts";
import type { PageDeps } from "./page-deps.ts";

type LogReadRequest = Parameters<PageParts["logs"]["read"]>[0];

type Headers = Record<string, string | undefined>;
const LOCAL = { host: "127.0.0.1:4194", "sec-fetch-site": "same-origin" };

function client(fake: FakePage, guard?: Guard) {
  const dispatch = dispatcher(fake.page.routes(guard));
  const gone = manyListeners();
  const ask = (target: string, headers: Headers = LOCAL, more: { method?: string; body?: string } = {}) =>
    dispatch({
      method: more.method ?? "GET",
      target,
      headers,
      readBody: async () => Buffer.from(more.body ?? ""),
      signal: gone.signal,
    });
  return { ask, leave: () => gone.abort() };
}

async function signedIn(fake: FakePage) {
  const { ask, leave } = client(fake);
  const token = fake.page.link("127.0.0.1:4194").split("#login=")[1] ?? "";
  const answer = await ask("/page/api/login", LOCAL, { method: "POST", body: token });
  assert.equal(answer.status, 200);
  const cookie = (answer.headers?.["Set-Cookie"] ?? "").split(";")[0] ?? "";
  const { key } = JSON.parse(String(answer.body)) as { key: string };
  const headers: Headers = { ...LOCAL, cookie: `other=1; ${cookie}`, authorization: `Bearer ${key}` };
  return { ask, leave, headers, token, setCookie: answer.headers?.["Set-Cookie"] ?? "" };
}

function refusalOf({ body }: RouteAnswer): PageRefusal {
  return JSON.parse(String(body)) as PageRefusal;
}

async function* parsed<Line>({ body }: RouteAnswer): AsyncGenerator<Line> {
  for await (const text of body as AsyncIterable<string>) {
    for (const line of text.trim().split("\n")) yield JSON.parse(line) as Line;
  }
}

test("a login link works once; its cookie is out of reach of scripts and other sites", async () => {
  const { ask, token, setCookie } = await signedIn(new FakePage({ pods: 1 }));
  assert.match(setCookie, /^kubelet-page-\d+=[\w-]{43}; Path=\/page\/; HttpOnly; SameSite=Strict$/);
  const again = await ask("/page/api/login", LOCAL, { method: "POST", body: token });
  assert.equal(again.status, 401);
  assert.match(refusalOf(again).message, /used already/);
});

const DATA = [
  ...["stream", "pods/uid-0", "logs/uid-0/main", "exec/uid-0/main"],
  ...["images", "node", "settings", "machine", "topology"],
];

test("without a session there is no data: neither cookie nor key alone suffices", async () => {
  const { ask, headers } = await signedIn(new FakePage({ pods: 1 }));
  for (const path of DATA) {
    const cases = [LOCAL, { ...headers, cookie: undefined }, { ...headers, authorization: undefined }];
    for (const without of cases) {
      const answer = await ask(`/page/api/${path}`, without);
      assert.equal(answer.status, 401, path);
      assert.equal(refusalOf(answer).signIn, "link");
    }
  }
});

test("a foreign host name, origin or site is refused, with a session too", async () => {
  const { ask, headers } = await signedIn(new FakePage({ pods: 1 }));
  const foreign = [
    { host: "evil.example:4194" },
    { host: "127.0.0.1.evil.example" },
    { origin: "http://127.0.0.1:8080" },
    { origin: "null" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "cross-site" },
  ];
  for (const more of foreign) {
    for (const path of DATA) {
      assert.equal((await ask(`/page/api/${path}`, { ...headers, ...more })).status, 403, JSON.stringify(more));
    }
    assert.equal((await ask("/page/api/login", { ...LOCAL, ...more }, { method: "POST", body: "x" })).status, 403);
  }
  const own = [
    { host: "localhost:9999", origin: "http://localhost:9999" },
    { host: "[::1]:4194" },
    { "sec-fetch-site": "none" },
    { "sec-fetch-site": undefined },
  ];
  for (const more of own) {
    assert.equal((await ask("/page/api/settings", { ...headers, ...more })).status, 200, JSON.stringify(more));
  }
});

test("signing out ends the session", async () => {
  const { ask, headers } = await signedIn(new FakePage({ pods: 1 }));
  assert.equal((await ask("/page/api/settings", headers)).status, 200);
  assert.equal((await ask("/page/api/logout", headers, { method: "POST" })).status, 200);
  assert.equal((await ask("/page/api/settings", headers)).status, 401);
});

/** A terminal of a runtime that is always there. */
const TERMINAL = { exec: async () => "http://127.0.0.1:1/", podOf: () => ({ metadata: {}, spec: { containers: [] } }) };

test("signing out ends the streams, logs and terminals of the session at once, and no others", async () => {
  const clock = new FakeClock();
  const fake = new FakePage({ pods: 1, clock, parts: { streams: TERMINAL } });
  const [one, other] = [await signedIn(fake), await signedIn(fake)];
  const upgrade = { upgrade: "websocket" };
  const open = async ({ ask, headers }: typeof one) => [
    await ask("/page/api/stream", headers),
    await ask("/page/api/pods/uid-0", headers),
    await ask("/page/api/logs/uid-0/main?follow=true", headers),
    await ask("/page/api/exec/uid-0/main?command=sh", { ...headers, ...upgrade }),
  ];
  const [mine, theirs] = [await open(one), await open(other)];
  assert.deepEqual(
    [...mine, ...theirs].map(({ status, until }) => [status, until?.aborted]),
    [...[200, 200, 200, 101], ...[200, 200, 200, 101]].map((status) => [status, false]),
  );
  const lines = parsed<OverviewLine>(mine[0] as RouteAnswer);
  await lines.next();
  await lines.next();
  await one.ask("/page/api/logout", one.headers, { method: "POST" });
  await clock.advance(0);
  assert.ok(mine.every(({ until }) => until?.aborted));
  assert.equal((await lines.next()).done, true, "it ends as a stream does");
  assert.ok(theirs.every(({ until }) => until?.aborted === false));
  other.leave();
});

test("a terminal is refused for its reason, with a WebSocket and without", async () => {
  const fake = new FakePage({ pods: 2, clock: new FakeClock(), parts: { streams: TERMINAL } });
  const { ask, headers, leave } = await signedIn(fake);
  const pod = fake.get("uid-1");
  const [container] = pod?.containers ?? [];
  assert.ok(pod && container);
  fake.set({ ...pod, containers: [{ ...container, state: "waiting" }] });
  const cases = [
    { path: "uid-0/main?command=sh", status: 426 },
    { path: "uid-0/main", status: 400 },
    { path: `uid-0/main?command=${"x".repeat(4097)}`, status: 400 },
    { path: "uid-0/other?command=sh", status: 404 },
    { path: "uid-1/main?command=sh", status: 409 },
    { path: "none/main?command=sh", status: 404 },
  ];
  for (const { path, status } of cases) {
    const plain = await ask(`/page/api/exec/${path}`, headers);
    assert.equal(plain.status, status, path);
    const upgraded = await ask(`/page/api/exec/${path}`, { ...headers, upgrade: "websocket" });
    assert.equal(upgraded.status, status === 426 ? 101 : status, path);
    if (status !== 426) assert.equal(plain.body, upgraded.body);
  }
  leave();
});

test("a terminal ends with its session, which it does not prolong", async () => {
  const clock = new FakeClock();
  const fake = new FakePage({ pods: 1, clock, parts: { streams: TERMINAL } });
  const { ask, headers } = await signedIn(fake);
  const { until } = await ask("/page/api/exec/uid-0/main?command=sh", { ...headers, upgrade: "websocket" });
  await clock.advance(12 * 3_600_000 - 1);
  assert.equal(until?.aborted, false);
  await clock.advance(10_000);
  assert.equal(until?.aborted, true);
});

test("a stream ends soon after its caller has lost a permission, and the next one has less", async () => {
  const clock = new FakeClock();
  const fake = new FakePage({ pods: 1, clock });
  const allowed = new Set(["GET /pods", "GET /stats/summary"]);
  let answer = 403;
  const { ask, leave } = client(fake, async ({ method, path }) =>
    allowed.has(`${method} ${path}`) ? undefined : textAnswer(answer, "no"),
  );
  const headers = { host: "node.example:4194", authorization: "Bearer t" };
  const opened = async () => {
    const stream = await ask("/page/api/stream", headers);
    const lines = parsed<OverviewLine>(stream);
    return { until: stream.until, lines, hello: ((await lines.next()).value as OverviewLine).hello };
  };
  const first = await opened();
  assert.deepEqual(first.hello?.sections, ["pods", "usage"]);
  allowed.delete("GET /stats/summary");
  answer = 500;
  await clock.advance(20_000);
  assert.equal(first.until?.aborted, false, "an API server that does not answer takes nothing away");
  answer = 403;
  await clock.advance(10_000);
  assert.equal(first.until?.aborted, true);
  const second = await opened();
  assert.deepEqual(second.hello?.sections, ["pods"]);
  leave();
  await Promise.all([first.lines.return(undefined), second.lines.return(undefined)]);
});

test("the number of open streams is bounded, and a place is free again when its client leaves", async () => {
  const fake = new FakePage({ pods: 1, clock: new FakeClock() });
  const { headers } = await signedIn(fake);
  const dispatch = dispatcher(fake.page.routes(undefined));
  const { signal } = new AbortController();
  const asked = { method: "GET", target: "/page/api/stream", headers, readBody: async () => Buffer.alloc(0), signal };
  const open = async () => {
    const gone = new AbortController();
    const { status, body } = await dispatch({ ...asked, signal: gone.signal });
    return { status, body, gone };
  };
  // The routes share their sessions, not their streams.
  const streams = [];
  for (let count = 0; count < 64; count++) streams.push(await open());
  assert.ok(streams.every(({ status }) => status === 200));
  const refused = await open();
  assert.equal(refused.status, 503);
  assert.match(String(refused.body), /close other tabs/);
  refused.gone.abort();
  assert.equal((await open()).status, 503, "a refused one had no place to give back");
  streams[0]?.gone.abort();
  const refusedLog = await dispatch({ ...asked, target: "/page/api/logs/none/main" });
  assert.equal(refusedLog.status, 404, "an error takes no place");
  assert.equal((await open()).status, 200);
});

test("the machine is drawn without the names of pods for who may not see them", async () => {
  const fake = new FakePage({ pods: 1 });
  const headers = { host: "node.example:4194", authorization: "Bearer t" };
  const read = async (...allowed: string[]) => {
    const { body } = await client(fake, guardFor(...allowed)).ask("/page/api/topology", headers);
    return String(body);
  };
  assert.match(await read("GET /spec/", "GET /pods"), /worker-2/);
  const without = await read("GET /spec/");
  assert.doesNotMatch(without, /worker-2|uid-2/);
  assert.equal((JSON.parse(without) as { cpus: unknown[] }).cpus.length, 32);
});

test("the page has a policy without inline code, and needs no session", async () => {
  const asset = { type: "text/html", bytes: Buffer.from("<!doctype html>"), isCompressed: false };
  const { staticRoutes } = await import("./static-routes.ts");
  const dispatch = dispatcher(staticRoutes({ read: async (name) => (name === "gone.js" ? undefined : asset) }));
  const raw = {
    method: "GET",
    headers: {},
    readBody: async () => Buffer.alloc(0),
    signal: new AbortController().signal,
  };
  const { status, headers } = await dispatch({ ...raw, target: "/" });
  assert.equal(status, 200);
  assert.match(headers?.["Content-Security-Policy"] ?? "", /^default-src 'none'; script-src 'self'; style-src 'self';/);
  assert.doesNotMatch(headers?.["Content-Security-Policy"] ?? "", /unsafe/);
  assert.equal(headers?.["Cache-Control"], "no-cache");
  const script = await dispatch({ ...raw, target: "/page/assets/main-ABC.js" });
  assert.equal(script.headers?.["Cache-Control"], "public, max-age=31536000, immutable");
  assert.equal((await dispatch({ ...raw, target: "/page/assets/gone.js" })).status, 404);
});

test("the stream begins with everything and goes on with what changed", async () => {
  const clock = new FakeClock();
  const fake = new FakePage({ pods: 3, clock });
  const { ask, headers, leave } = await signedIn(fake);
  assert.equal(fake.isWatched, false);
  const lines = parsed<OverviewLine>(await ask("/page/api/stream", headers));
  const next = async (): Promise<OverviewLine> => (await lines.next()).value as OverviewLine;
  const first = await next();
  assert.equal(first.hello?.node, "n1");
  assert.deepEqual(
    first.pods?.set.map(({ uid }) => uid),
    ["uid-0", "uid-1", "uid-2"],
  );
  assert.equal((await next()).usage?.pods.length, 3);
  assert.equal(fake.isWatched, true);

  const pod = fake.get("uid-1");
  assert.ok(pod);
  const changed = next();
  fake.set({ ...pod, state: "Error" });
  fake.event(pod, { reason: "BackOff" });
  fake.remove("uid-2");
  await clock.advance(250);
  const line = await changed;
  assert.deepEqual(
    line.pods?.set.map(({ state }) => state),
    ["Error"],
  );
  assert.deepEqual(line.pods?.gone, ["uid-2"]);
  assert.deepEqual(
    line.events?.map(({ reason }) => reason),
    ["BackOff"],
  );
  assert.equal(line.usage, undefined);

  const measured = next();
  await clock.advance(2000);
  assert.deepEqual((await measured).usage?.gone, ["uid-2"]);
  leave();
  await lines.return(undefined);
  assert.equal(fake.isWatched, false, "nothing is done while nobody looks");
});

test("changes within a quarter of a second are one line", async () => {
  const clock = new FakeClock();
  const fake = new FakePage({ pods: 2, clock });
  const { ask, headers, leave } = await signedIn(fake);
  const lines = parsed<OverviewLine>(await ask("/page/api/stream", headers));
  await lines.next();
  await lines.next();
  const changed = lines.next();
  for (const uid of ["uid-0", "uid-1"]) {
    const pod = fake.get(uid);
    assert.ok(pod);
    fake.set({ ...pod, state: "Error" });
    await clock.advance(125);
  }
  const { pods } = (await changed).value as OverviewLine;
  assert.deepEqual(
    pods?.set.map(({ uid }) => uid),
    ["uid-0", "uid-1"],
  );
  leave();
  await lines.return(undefined);
});

test("a log is followed until its container ends or has another log, and is never stored", async () => {
  const wanted: LogReadRequest[] = [];
  let path = "/logs/a";
  const logs: PageParts["logs"] = {
    read: (request) => {
      wanted.push(request);
      return Readable.from([Buffer.from("x")]);
    },
  };
  const fake = new FakePage({ pods: 1, clock: new FakeClock(), parts: { logs } });
  const pod = fake.get("uid-0");
  assert.ok(pod);
  const view = { explain: (uid: string) => fake.get(uid), logPath: () => path, onChange: () => undefined };
  const answer = (query: string): RouteAnswer => {
    const request = bareRequest("GET", `/page/api/logs/uid-0/main?${query}`, {
      params: { uid: "uid-0", container: "main" },
    });
    // Reason: nothing else of the page is asked for.
    return logAnswer({ view, logs } as unknown as PageDeps, request);
  };
  const { status, headers, body } = answer("follow=true&tail=999999999&timestamps=true");
  for await (const _chunk of body as AsyncIterable<Uint8Array>);
  assert.deepEqual(
    [status, headers?.["Cache-Control"], headers?.["X-Content-Type-Options"]],
    [200, "no-store", "nosniff"],
  );
  const [first] = wanted;
  assert.deepEqual([first?.path, first?.tail, first?.timestamps], ["/logs/a", 100_000, true]);
  assert.equal(first?.follow?.ended(), false);
  path = "/logs/b";
  assert.equal(first?.follow?.ended(), true, "another instance runs");
  path = "/logs/a";
  fake.set({ ...pod, containers: pod.containers.map((one) => ({ ...one, state: "terminated" })) });
  assert.equal(first?.follow?.ended(), true, "it ended");
  answer("");
  answer("follow=true&previous=true");
  assert.deepEqual(
    wanted.slice(1).map(({ follow, tail }) => [follow, tail]),
    [
      [undefined, 1000],
      [undefined, 1000],
    ],
  );
});

test("a pod whose usage did not change is not sent again", async () => {
  const { SentUsage } = await import("./sent-usage.ts");
  const sent = new SentUsage();
  const node = {
    at: 1,
    workingSetBytes: 1,
    network: { rxBytes: 0, txBytes: 0 },
    swap: { totalBytes: 0, freeBytes: 0 },
  };
  const pod = (uid: string, nanoCores: number, at: number) => {
    const usage = { at, nanoCores, workingSetBytes: 70_000 };
    return { uid, name: uid, namespace: "d", ...usage, containers: [{ name: "main", ...usage }] };
  };
  const report = (at: number, busy: number) => {
    return { node, cores: 1, memoryBytes: 1, pods: [pod("idle", 100_000 + at, at), pod("busy", busy, at)] };
  };
  assert.equal(sent.next(report(1, 5e6)).pods.length, 2);
  assert.deepEqual(
    sent.next(report(2, 9e6)).pods.map(({ uid }) => uid),
    ["busy"],
  );
});

test("the stream of a pod has its explanation, its usage, and its end", async () => {
  const clock = new FakeClock();
  const fake = new FakePage({ pods: 2, clock });
  const { ask, headers } = await signedIn(fake);
  assert.equal((await ask("/page/api/pods/none", headers)).status, 404);
  const lines = parsed<PodLine>(await ask("/page/api/pods/uid-1", headers));
  const first = (await lines.next()).value as PodLine;
  assert.equal(first.pod?.uid, "uid-1");
  assert.equal(first.usage?.uid, "uid-1");
  assert.deepEqual(
    first.probes?.map(({ kind, check, result }) => [kind, check, result]),
    [
      ["startup", "TCP :8080", "success"],
      ["liveness", "HTTP GET :8080/healthz", "success"],
      ["readiness", "exec /bin/ready --all", "success"],
    ],
  );
  const last = lines.next();
  fake.remove("uid-0");
  fake.remove("uid-1");
  await clock.advance(250);
  assert.equal(((await last).value as PodLine).gone, true);
  assert.equal((await lines.next()).done, true);
});

/** Allows these pairs of method and first part of the path, as the main port would. */
function guardFor(...allowed: readonly string[]): Guard {
  return async ({ method, path, headers }) => {
    if (headers["authorization"] === undefined) return textAnswer(401, "Unauthorized");
    return allowed.includes(`${method} ${path}`) ? undefined : textAnswer(403, "Forbidden (user=u)");
  };
}

test("elsewhere the caller sees what the main port would give", async () => {
  const fake = new FakePage({ pods: 1 });
  const { ask, leave } = client(fake, guardFor("GET /pods"));
  const host = "node.example:4194";
  const anonymous = await ask("/page/api/stream", { host });
  assert.equal(anonymous.status, 401);
  assert.equal(refusalOf(anonymous).signIn, "token");
  const headers = { host, authorization: "Bearer t" };
  const lines = parsed<OverviewLine>(await ask("/page/api/stream", headers));
  const { hello, pods, usage } = (await lines.next()).value as OverviewLine;
  assert.deepEqual(hello?.sections, ["pods"]);
  assert.equal(pods?.set.length, 1);
  assert.equal(usage, undefined);
  assert.equal(fake.sampled, 0, "what is not shown is not measured");
  leave();
  await lines.return(undefined);
  for (const path of ["logs/uid-0/main", "exec/uid-0/main", "images", "node", "settings", "machine"]) {
    assert.equal((await ask(`/page/api/${path}`, headers)).status, 403, path);
  }
  assert.equal((await ask("/page/api/login", headers, { method: "POST", body: "x" })).status, 404, "no sessions there");
  assert.equal(fake.page.link(host), "https://node.example:4194/");
  assert.equal(fake.page.link("0.0.0.0:4194"), "https://n1:4194/");
});

test("a page of another origin cannot use a certificate of the browser", async () => {
  const { ask } = client(new FakePage({ pods: 1 }), async () => undefined);
  const host = "node.example:4194";
  assert.equal((await ask("/page/api/settings", { host, origin: "https://node.example:4194" })).status, 200);
  assert.equal((await ask("/page/api/settings", { host, origin: "https://evil.example" })).status, 403);
  assert.equal((await ask("/page/api/settings", { host, "sec-fetch-site": "cross-site" })).status, 403);
});

test("without debugging handlers there are neither logs nor terminals", async () => {
  const fake = new FakePage({ pods: 1 }, ["--enable-debugging-handlers=false"]);
  const { ask, headers, leave } = await signedIn(fake);
  assert.equal((await ask("/page/api/logs/uid-0/main", headers)).status, 405);
  const lines = parsed<OverviewLine>(await ask("/page/api/stream", headers));
  const { hello } = (await lines.next()).value as OverviewLine;
  assert.deepEqual(hello?.sections, ["pods", "usage", "images", "configuration", "machine"]);
  leave();
  await lines.return(undefined);
});

test("the configuration says what differs from the defaults, and masks secrets", async () => {
  const argv = ["--max-pods=7", "--manifest-url-header=token:hidden"];
  const { ask, headers } = await signedIn(new FakePage({ pods: 0 }, argv));
  const body = String((await ask("/page/api/settings", headers)).body);
  assert.doesNotMatch(body, /hidden/);
  const settings = JSON.parse(body) as { name: string; shown: string; fallback: string; differs: boolean }[];
  const names = new Set(settings.map(({ name }) => name));
  assert.deepEqual([names.has("--help"), names.has("--version"), names.has("maxPods")], [false, false, true]);
  const changed = settings.filter(({ differs }) => differs).map(({ name, shown, fallback }) => [name, shown, fallback]);
  assert.deepEqual(changed, [
    ["staticPodURLHeader", "<masked>", ""],
    ["maxPods", "7", "110"],
  ]);
});
