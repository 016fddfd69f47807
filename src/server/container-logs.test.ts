import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ALL_ON, apiDeps, WEB } from "../../test/support/api-deps.ts";
import { bareRequest } from "../adapters/net/http-route.ts";
import { RuntimeError } from "../adapters/runtime/port.ts";
import { fixed } from "../lib/live.ts";
import type { ContainerStatus } from "../model/generated/types.ts";
import { chooseInstance, containerLogRoutes } from "./routes/container-logs.ts";
import { readLogOptions } from "./routes/log-options.ts";

const [route] = containerLogRoutes;

async function logs(query: string, where = { namespace: "default", pod: "web", container: "main" }, gates = ALL_ON) {
  const { calls, deps } = apiDeps({ switches: fixed(gates) });
  assert.ok(route);
  const answer = await route.handle(deps, bareRequest("GET", `/containerLogs?${query}`, { params: where }));
  let body = "";
  if (typeof answer.body === "string") body = answer.body;
  else for await (const chunk of answer.body) body += String(chunk);
  return { status: answer.status, body, calls };
}

const good = [
  { query: "", wish: { path: "/log/c1", timestamps: false } },
  { query: "previous=true&timestamps=1", wish: { path: "/log/c0", timestamps: true } },
  { query: "follow=true", wish: { path: "/log/c1", timestamps: false, follow: true } },
  { query: "follow=false", wish: { path: "/log/c1", timestamps: false } },
  { query: "tailLines=0&limitBytes=5", wish: { path: "/log/c1", timestamps: false, tail: 0, limitBytes: 5 } },
  { query: "tail=7", wish: { path: "/log/c1", timestamps: false, tail: 7 } },
  { query: "tail=all", wish: { path: "/log/c1", timestamps: false } },
  { query: "sinceSeconds=10", wish: { path: "/log/c1", timestamps: false, sinceMs: 90_000 } },
  {
    query: "sinceTime=2026-01-02T03:04:05Z",
    wish: { path: "/log/c1", timestamps: false, sinceMs: Date.UTC(2026, 0, 2, 3, 4, 5) },
  },
  { query: "container=x&insecureSkipTLSVerifyBackend=true", wish: { path: "/log/c1", timestamps: false } },
];
for (const { query, wish } of good) {
  test(`containerLogs ?${query}`, async () => {
    const { status, body, calls } = await logs(query);
    assert.deepEqual({ status, body, calls }, { status: 200, body: "hello\n", calls: [["log", wish]] });
  });
}

test("containerLogs: one stream needs its gate", async () => {
  assert.equal((await logs("stream=Stdout")).status, 400);
  const { calls } = await logs("stream=Stderr", undefined, { ...ALL_ON, isGateOn: () => true });
  assert.deepEqual(calls, [["log", { path: "/log/c1", timestamps: false, stream: "stderr" }]]);
});

/** The body of an answer whose log ends with this error. */
async function endingWith(error: Error): Promise<string> {
  const { deps } = apiDeps({
    logs: {
      async *read() {
        yield Buffer.from("hello\n");
        throw error;
      },
    },
  });
  assert.ok(route);
  const params = { namespace: "default", pod: "web", container: "main" };
  const { body } = await route.handle(deps, bareRequest("GET", "/containerLogs", { params }));
  assert.ok(typeof body !== "string" && !(body instanceof Uint8Array));
  let text = "";
  for await (const chunk of body) text += String(chunk);
  return text;
}

test("containerLogs: an error behind the first byte is appended to the body, a bug ends it", async () => {
  assert.equal(await endingWith(new RuntimeError("Unknown", "input/output error")), "hello\ninput/output error\n");
  await assert.rejects(endingWith(new TypeError("x is undefined")), TypeError);
});

describe("containerLogs: an instance that was not observed", () => {
  async function unobserved(containerStatus: () => Promise<{ logPath: string }>) {
    const { deps, calls } = apiDeps();
    const pods = { ...deps.pods, observed: () => undefined };
    // Reason: only the path of the log is asked for.
    const runtime = { ...deps.runtime, containerStatus } as unknown as typeof deps.runtime;
    assert.ok(route);
    const params = { namespace: "default", pod: "web", container: "main" };
    const { status } = await route.handle({ ...deps, pods, runtime }, bareRequest("GET", "/containerLogs", { params }));
    return { status, calls };
  }

  test("has the path that the runtime reports", async () => {
    assert.equal((await unobserved(async () => ({ logPath: "/log/other" }))).status, 200);
  });

  test("that the runtime does not know has no log", async () => {
    const gone = new RuntimeError("NotFound", "gone");
    const { status, calls } = await unobserved(() => Promise.reject(gone));
    assert.ok(status >= 400, String(status));
    assert.deepEqual(calls, []);
  });

  test("is not taken for one without a log because of a bug", async () => {
    await assert.rejects(
      unobserved(() => Promise.reject(new TypeError("x is undefined"))),
      TypeError,
    );
  });
});

const bad = [
  { query: "tailLines=-1", status: 422 },
  { query: "tailLines=x", status: 400 },
  { query: "limitBytes=0", status: 422 },
  { query: "sinceSeconds=0", status: 422 },
  { query: "sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z", status: 422 },
  { query: "sinceTime=yesterday", status: 400 },
  { query: "stream=Both", status: 422 },
  { query: "tailLines=1&stream=Stdout", status: 422 },
  { query: "tailLines=99999999999999999999", status: 400 },
];
for (const { query, status } of bad) {
  test(`containerLogs ?${query} is ${status}, in JSON's words`, () => {
    const answer = readLogOptions(new URLSearchParams(query));
    assert.ok("status" in answer);
    assert.equal(answer.status, status);
    assert.equal(typeof (JSON.parse(String(answer.body)) as { message: unknown }).message, "string");
  });
}

test("containerLogs: an invalid parameter is reported before a missing pod, and that before a missing container", async () => {
  const nope = { namespace: "default", pod: "nope", container: "main" };
  assert.equal((await logs("limitBytes=0", nope)).status, 422);
  assert.deepEqual(await logs("", nope), { status: 404, body: 'pod "nope" does not exist\n', calls: [] });
  const other = { namespace: "default", pod: "web", container: "other" };
  assert.equal((await logs("", other)).body, 'container "other" not found in pod "web"\n');
});

const ended = { exitCode: 0, containerID: "containerd://c5" };
const choices: { name: string; status?: Partial<ContainerStatus>; previous?: boolean; want: string | RegExp }[] = [
  { name: "running", status: { state: { running: {} }, containerID: "containerd://c1" }, want: "c1" },
  { name: "ended", status: { state: { terminated: ended } }, want: "c5" },
  {
    name: "ended without an id, but one before",
    status: { state: { terminated: { exitCode: 0 } }, lastState: { terminated: ended } },
    want: "c5",
  },
  { name: "ended without an id", status: { state: { terminated: { exitCode: 0 } } }, want: /is terminated$/ },
  {
    name: "waiting after one that ended",
    status: { state: { waiting: {} }, lastState: { terminated: ended } },
    want: "c5",
  },
  {
    name: "waiting after one that ended without an id",
    status: { state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: { terminated: { exitCode: 1 } } },
    want: /is terminated$/,
  },
  {
    name: "waiting for its image",
    status: { state: { waiting: { reason: "ImagePullBackOff" } } },
    want: /waiting to start: trying and failing to pull image$/,
  },
  {
    name: "waiting for a pull that failed",
    status: { state: { waiting: { reason: "ErrImagePull" } } },
    want: /waiting to start: image can't be pulled$/,
  },
  {
    name: "waiting without its image",
    status: { state: { waiting: { reason: "ErrImageNeverPull" } } },
    want: /waiting to start: ErrImageNeverPull$/,
  },
  { name: "no state", status: { state: {} }, want: /waiting to start - no logs yet$/ },
  {
    name: "waiting",
    status: { state: { waiting: { reason: "ContainerCreating" } } },
    want: /waiting to start: ContainerCreating$/,
  },
  { name: "no status", want: /is not available$/ },
  { name: "previous", status: { lastState: { terminated: ended } }, previous: true, want: "c5" },
  { name: "no previous", status: { state: { running: {} } }, previous: true, want: /^previous terminated container/ },
];
for (const c of choices) {
  test(`choice of instance: ${c.name}`, () => {
    const base = { name: "main", image: "", imageID: "", ready: false, restartCount: 0 };
    const pod = { ...WEB, status: c.status === undefined ? {} : { containerStatuses: [{ ...base, ...c.status }] } };
    const chosen = chooseInstance(pod, "main", c.previous ?? false);
    if (typeof c.want === "string") assert.deepEqual(chosen, { id: c.want });
    else assert.match("refused" in chosen ? chosen.refused : "", c.want);
  });
}
