import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_ON, apiDeps, observed, streamsOver, WEB, WEB_OBSERVED } from "../../test/support/api-deps.ts";
import { type Dispatch, dispatcher } from "../adapters/net/http-dispatch.ts";
import type { RouteAnswer } from "../adapters/net/http-route.ts";
import { RuntimeError } from "../adapters/runtime/port.ts";
import { fixed } from "../lib/live.ts";
import type { ApiDeps, ApiSwitches } from "./api-deps.ts";
import { toHttpRoutes } from "./api-route.ts";
import { type HealthCheck, livenessRoutes, ping } from "./health.ts";
import { API_ROUTES } from "./table.ts";

interface Asked {
  readonly status: number;
  readonly body: string;
  readonly answer: RouteAnswer;
}

async function ask(
  dispatch: Dispatch,
  request: string,
  { headers = {}, sent = "" }: { headers?: Record<string, string> | undefined; sent?: string | undefined } = {},
): Promise<Asked> {
  const [method = "GET", target = "/"] = request.includes(" ") ? request.split(" ") : ["GET", request];
  const answer = await dispatch({
    method,
    target,
    headers,
    signal: new AbortController().signal,
    readBody: async () => Buffer.from(sent),
  });
  const parts: Buffer[] = [];
  if (typeof answer.body === "string" || answer.body instanceof Uint8Array) parts.push(Buffer.from(answer.body));
  else for await (const chunk of answer.body) parts.push(Buffer.from(chunk));
  return { status: answer.status, body: Buffer.concat(parts).toString(), answer };
}

function main(deps: ApiDeps = apiDeps().deps, port: "main" | "readOnly" = "main"): Dispatch {
  return dispatcher(toHttpRoutes(API_ROUTES, deps, port));
}

const sick: HealthCheck = { name: "syncloop", problem: () => "stuck for 6 min" };
const well: HealthCheck = { name: "log", problem: () => undefined };

const health = [
  { checks: [ping], target: "/healthz", status: 200, body: "ok" },
  { checks: [ping], target: "/healthz?verbose", status: 200, body: "[+]ping ok\nhealthz check passed\n" },
  { checks: [ping], target: "/healthz/ping", status: 200, body: "ok" },
  { checks: [ping, well, sick], target: "/healthz/log", status: 200, body: "ok" },
  {
    checks: [ping, well, sick],
    target: "/healthz",
    status: 500,
    body: "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n",
  },
  { checks: [ping, sick], target: "/healthz?exclude=syncloop", status: 200, body: "ok" },
  {
    checks: [ping, sick],
    target: "/healthz?exclude=syncloop&exclude=nope&verbose",
    status: 200,
    body: '[+]ping ok\n[+]syncloop excluded: ok\nwarn: some health checks cannot be excluded: no matches for "nope"\nhealthz check passed\n',
  },
  { checks: [sick], target: "/healthz/syncloop", status: 500, body: "internal server error: stuck for 6 min\n" },
];
for (const c of health) {
  test(`${c.target} with ${c.checks.map((check) => check.name).join(", ")} answers ${c.status}`, async () => {
    const { status, body } = await ask(main(apiDeps({ checks: c.checks }).deps), c.target);
    assert.deepEqual({ status, body }, { status: c.status, body: c.body });
  });
}

test("the health port is 200 for every method despite problems, which ?verbose lists", async () => {
  const dispatch = dispatcher(livenessRoutes([ping, sick]));
  for (const method of ["GET", "HEAD", "POST"]) assert.equal((await ask(dispatch, `${method} /healthz`)).status, 200);
  const { status, body } = await ask(dispatch, "/healthz?verbose");
  assert.equal(status, 200);
  assert.match(body, /\[-\]syncloop failing: stuck for 6 min\n/);
  assert.equal((await ask(dispatch, "/pods")).status, 404);
});

/** Each endpoint: what it answers when all is well. */
const answers: { request: string; status: number; body?: RegExp; headers?: Record<string, string>; sent?: string }[] = [
  {
    request: "/pods",
    status: 200,
    body: /^\{"kind":"PodList","apiVersion":"v1","metadata":\{\},"items":\[\{"metadata":\{"name":"web"/,
  },
  { request: "/pods/", status: 200, body: /PodList/ },
  { request: "POST /pods", status: 405, body: /^405: Method Not Allowed$/ },
  { request: "/pods/x", status: 404, body: /^404: Page Not Found$/ },
  { request: "/podsx", status: 404, body: /^404 page not found\n$/ },
  {
    request: "/runningpods/",
    status: 200,
    body: /"uid":"u1"\}.*"containers":\[\{"name":"main","image":"demo","resources":\{\}\}\]/,
  },
  { request: "/runningpods", status: 301 },
  { request: "/metrics", status: 200, body: /^m 1\n$/ },
  { request: "/metrics/probes", status: 200, body: /^p 1\n$/ },
  { request: "/metrics/slis", status: 200, body: /kubernetes_healthcheck\{name="ping",type="healthz"\} 1\n/ },
  { request: "DELETE /metrics/slis", status: 200, body: /^metrics reset\n$/ },
  { request: "/metrics/cadvisor", status: 501, body: /not measured/ },
  { request: "/metrics/resource", status: 501, body: /not measured/ },
  { request: "/stats/summary", status: 501, body: /not measured/ },
  { request: "/stats", status: 301 },
  { request: "/stats/", status: 501, body: /not measured/ },
  { request: "/spec/", status: 501, body: /not measured/ },
  { request: "/configz", status: 200, body: /^\{"kubeletconfig":\{"kind":"K"\}\}$/ },
  { request: "/flagz", status: 200, body: /^kubelet flagz\n.*\n\nv=2\n$/ },
  { request: "/statusz", status: 200, body: /uptimeSeconds=100\n/ },
  {
    request: "/flagz",
    headers: { accept: "application/json;v=v1beta1;g=config.k8s.io;as=Flagz" },
    status: 200,
    body: /^\{"kind":"Flagz","apiVersion":"config.k8s.io\/v1beta1".*"flags":\{"v":"2"\}\}$/,
  },
  { request: "/flagz", headers: { accept: "image/png" }, status: 406 },
  { request: "POST /run/default/web/main?cmd=ls%20-l", status: 200, body: /^outerr$/ },
  { request: "POST /run/default/web/u1/main?cmd=ls", status: 200 },
  { request: "POST /run/default/web/u2/main?cmd=ls", status: 500, body: /container not found/ },
  { request: "POST /run/default/nope/main?cmd=ls", status: 404, body: /^pod does not exist\n$/ },
  { request: "GET /run/default/web/main?cmd=ls", status: 405 },
  {
    request: "POST /checkpoint/default/web/main",
    status: 200,
    body: /^\{"items":\["\/r\/checkpoints\/checkpoint-web_default-main-1970-01-01T00:01:40Z.tar"\]\}$/,
  },
  { request: "POST /checkpoint/default/web/other", status: 404 },
  { request: "POST /checkpoint/default/web/main?timeout=x", status: 404, body: /timeout/ },
  { request: "/logs/", status: 200, body: /<a href="a%26b\/">a&amp;b\/<\/a>/ },
  { request: "/logs", status: 301 },
  { request: "/logs/sub", status: 301 },
  { request: "/logs/syslog", status: 200, body: /^0123456789$/ },
  { request: "/logs/syslog", headers: { range: "bytes=2-4" }, status: 206, body: /^234$/ },
  { request: "/logs/syslog", headers: { range: "bytes=-3" }, status: 206, body: /^789$/ },
  { request: "/logs/syslog", headers: { range: "bytes=10-" }, status: 416 },
  { request: "/logs/nope", status: 404 },
  { request: "/logs/../etc/shadow", status: 400 },
  { request: "/logs/%2e%2e/etc/shadow", status: 400 },
  { request: "/logs/?query=kubelet", status: 200, body: /<pre>/ },
  { request: "/debug/pprof/", status: 200, body: /profile/ },
  { request: "/debug/pprof/cmdline", status: 200, body: /^kubelet\0-v$/ },
  { request: "/debug/pprof/profile?seconds=2", status: 200, body: /^cpu 2$/ },
  { request: "/debug/pprof/heap?seconds=300", status: 200, body: /^heap 300$/ },
  { request: "/debug/pprof/profile", status: 200, body: /^cpu 30$/ },
  ...["99999", "301", "0", "x", "", "-1", "1.5"].map((seconds) => ({
    request: `/debug/pprof/profile?seconds=${seconds}`,
    status: 400,
  })),
  { request: "/debug/pprof/goroutine", status: 404 },
  { request: "PUT /debug/flags/v", sent: "4", status: 200, body: /verbosity to 4/ },
  { request: "PUT /debug/flags/v", sent: "much", status: 400 },
  { request: "GET /debug/flags/v", status: 406 },
  { request: "/exec/default/web/main?command=ls", status: 400, body: /at least 1 of stdin/ },
  { request: "/exec/default/nope/main?command=ls&output=1", status: 404, body: /^pod does not exist\n$/ },
  { request: "/exec/default/web/other?command=ls&output=1", status: 500, body: /container not found/ },
  { request: "PUT /exec/default/web/main?command=ls&output=1", status: 405 },
  { request: "/exec/default", status: 404, body: /^404: Page Not Found$/ },
  { request: "/portForward/default/web/u2", status: 404 },
  { request: "/portForward/default/web", headers: { upgrade: "websocket" }, status: 400, body: /port/ },
  { request: "/portForward/default/web?port=0", headers: { upgrade: "websocket" }, status: 400 },
];
for (const c of answers) {
  test(`${c.request} ${c.headers === undefined ? "" : JSON.stringify(c.headers)} is ${c.status}`, async () => {
    const { status, body } = await ask(main(), c.request, c);
    assert.equal(status, c.status, body);
    if (c.body !== undefined) assert.match(body, c.body);
  });
}

const handed = [
  {
    request: "/exec/default/web/main?command=sh&command=-c&input=1&output=1&error=1&tty=1",
    call: ["exec", "c1", { tty: true, stdin: true, stdout: true, stderr: false, command: ["sh", "-c"] }],
  },
  {
    request: "POST /exec/default/web/u1/main?command=ls&output=1&error=true",
    call: ["exec", "c1", { tty: false, stdin: false, stdout: true, stderr: false, command: ["ls"] }],
  },
  {
    request: "/attach/default/web/main?output=1&tty=1",
    call: ["attach", "c1", { tty: false, stdin: false, stdout: true, stderr: false }],
  },
  { request: "POST /portForward/default/web", call: ["portForward", "s1", []] },
  { request: "/portForward/default/web?port=80,81&port=82", call: ["portForward", "s1", [80, 81, 82]] },
];
for (const { request, call } of handed) {
  test(`${request} is handed to the runtime`, async () => {
    const { calls, deps } = apiDeps();
    const { answer } = await ask(
      main(deps),
      request,
      request.includes("port=") ? { headers: { upgrade: "WebSocket" } } : {},
    );
    assert.match(answer.upgradeTo ?? "", /^http:\/\/127/);
    assert.deepEqual(calls, [call]);
  });
}

test("attach to an ephemeral container has the terminal of its spec", async () => {
  const calls: unknown[] = [];
  const debug = { name: "debugger", image: "demo", tty: true, stdin: true };
  const pod = { ...WEB, spec: { ...WEB.spec, ephemeralContainers: [debug] } };
  const running = { ...observed("c9", "running"), name: "debugger" };
  const streams = streamsOver(
    (name) =>
      async (...args) => {
        calls.push([name, ...args.slice(0, -1)]);
        return "http://127.0.0.1:1/attach/t";
      },
    { ...WEB_OBSERVED, containers: [running] },
  );
  const { deps } = apiDeps({ streams });
  const found = { ...deps, pods: { ...deps.pods, find: () => pod } };
  await ask(main(found), "POST /attach/default/web/debugger?input=1&output=1&error=1&tty=1");
  assert.deepEqual(calls, [["attach", "c9", { tty: true, stdin: true, stdout: true, stderr: false }]]);
});

for (const [code, status] of [
  ["NotFound", 404],
  ["ResourceExhausted", 429],
  ["Unavailable", 500],
] as const) {
  test(`exec that the runtime refuses with ${code} is ${status}`, async () => {
    const exec = async (): Promise<string> => {
      throw new RuntimeError(code, "no");
    };
    const refused = apiDeps({ streams: streamsOver(() => exec) }).deps;
    const { answer } = await ask(main(refused), "/exec/default/web/main?command=ls&output=1");
    assert.equal(answer.status, status);
    assert.equal(answer.headers?.["Retry-After"], status === 429 ? "60" : undefined);
  });
}

const off = { ...ALL_ON, debugging: false };
const gates: { name: string; switches: ApiSwitches; port?: "readOnly"; wants: Record<string, number> }[] = [
  {
    name: "without debugging handlers",
    switches: off,
    wants: {
      "/pods": 200,
      "/metrics": 200,
      "/healthz": 200,
      "/stats/summary": 501,
      "/exec/default/web/main": 405,
      "/attach/x": 405,
      "/portForward/a/b": 405,
      "/containerLogs/a/b/c": 405,
      "/run/a/b/c": 405,
      "/runningpods/": 405,
      "/logs/": 405,
      "/debug/pprof/": 405,
      "/configz": 404,
      "/checkpoint/a/b/c": 404,
      "/flagz": 404,
      "/statusz": 404,
      "/debug/flags/v": 404,
    },
  },
  {
    name: "on the read-only port, whatever is switched on",
    switches: ALL_ON,
    port: "readOnly",
    wants: {
      "/pods": 200,
      "/metrics": 200,
      "/healthz": 200,
      "/metrics/slis": 200,
      "/exec/default/web/main": 405,
      "/containerLogs/default/web/main": 405,
      "/logs/": 405,
      "/runningpods/": 405,
      "/configz": 404,
      "/checkpoint/a/b/c": 404,
      "/flagz": 404,
      "/statusz": 404,
      "/debug/flags/v": 404,
    },
  },
  { name: "without system logs", switches: { ...ALL_ON, systemLogs: false }, wants: { "/logs/": 405, "/pods": 200 } },
  { name: "without profiling", switches: { ...ALL_ON, profiling: false }, wants: { "/debug/pprof/": 405 } },
  { name: "without debug flags", switches: { ...ALL_ON, debugFlags: false }, wants: { "/debug/flags/v": 405 } },
  { name: "with gates off", switches: { ...ALL_ON, isGateOn: () => false }, wants: { "/flagz": 404, "/configz": 200 } },
];
for (const c of gates) {
  test(`gates: ${c.name}`, async () => {
    const { calls, deps } = apiDeps({ switches: fixed(c.switches) });
    const dispatch = main(deps, c.port ?? "main");
    for (const [target, status] of Object.entries(c.wants)) {
      assert.equal((await ask(dispatch, target)).status, status, target);
    }
    assert.deepEqual(calls, []);
  });
}

test("the log verbosity is set by a PUT with a number only", async () => {
  for (const [request, sent, want] of [
    ["PUT /debug/flags/v", "4", [["verbosity", 4]]],
    ["PUT /debug/flags/v", "much", []],
    ["GET /debug/flags/v", "4", []],
  ] as const) {
    const { calls, deps } = apiDeps();
    await ask(main(deps), request, { sent });
    assert.deepEqual(calls, want, `${request} ${sent}`);
  }
});

test("a bug behind exec is not an answer of the runtime", async () => {
  const exec = (): Promise<string> => Promise.reject(new TypeError("x is undefined"));
  const { deps } = apiDeps({ streams: streamsOver(() => exec) });
  await assert.rejects(ask(main(deps), "/exec/default/web/main?command=ls&output=1"), TypeError);
});

test("a failed checkpoint has the runtime's message, with the code that clients match", async () => {
  const { deps } = apiDeps();
  const refused = new RuntimeError("Unimplemented", "unknown method CheckpointContainer");
  const runtime = { ...deps.runtime, checkpointContainer: () => Promise.reject(refused) };
  const { status, body } = await ask(main({ ...deps, runtime }, "main"), "POST /checkpoint/default/web/main");
  assert.equal(status, 500);
  const words = "rpc error: code = Unimplemented desc = unknown method CheckpointContainer";
  assert.equal(String(body), `checkpointing of default/web/main failed (${words})\n`);
});
