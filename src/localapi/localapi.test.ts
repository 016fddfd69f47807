import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { AgentError, UnixClient } from "../adapters/net/unix-client.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { ImageReport } from "../model/image-report.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import type { ContainerSummary, PodEvent, PodExplanation, PodSummary } from "../model/step.ts";
import type { AgentView, LogRequest, Refusal } from "./agent-view.ts";
import { localApiServer } from "./index.ts";
import { matchPod } from "./match.ts";
import type { PodChanges } from "./streams.ts";

const dir = mkdtempSync(join(tmpdir(), "localapi-"));
after(() => rmSync(dir, { recursive: true }));

function summary(name: string, more: Partial<PodSummary> = {}): PodSummary {
  const counts = { readyContainers: 1, totalContainers: 1, restarts: 0 };
  const state = { source: "file", state: "Running", phase: "Running", ip: "10.88.0.2", seenAt: 1 };
  return { uid: `uid-${more.namespace ?? ""}${name}`, name, namespace: "default", ...counts, ...state, ...more };
}

const matching = [
  { name: "full name", wanted: { name: "web-n1" }, want: "default/web-n1" },
  { name: "the manifest's name, without the node", wanted: { name: "web" }, want: "default/web-n1" },
  { name: "namespace and full name", wanted: { name: "dns-n1", namespace: "kube" }, want: "kube/dns-n1" },
  { name: "namespace and short name", wanted: { name: "dns", namespace: "kube" }, want: "kube/dns-n1" },
  { name: "a UID", wanted: { name: "uid-web-n1" }, want: "default/web-n1" },
  { name: "a full name goes before a short one", wanted: { name: "api" }, want: "default/api" },
  { name: "one name in two namespaces", wanted: { name: "db" }, want: ["default/db-n1", "kube/db-n1"] },
  { name: "a slip", wanted: { name: "wbe" }, want: { near: ["default/web-n1"] } },
  { name: "the wrong namespace", wanted: { name: "web", namespace: "kube" }, want: { near: ["default/web-n1"] } },
  {
    name: "nothing near lists some",
    wanted: { name: "zzzzzz" },
    want: { near: ["default/api", "kube/db-n1", "kube/dns-n1", "default/web-n1"] },
  },
];
const pods = [
  summary("web-n1"),
  summary("dns-n1", { namespace: "kube" }),
  summary("api"),
  summary("api-n1"),
  summary("db-n1"),
  summary("db-n1", { namespace: "kube" }),
];
for (const c of matching) {
  test(`match: ${c.name}`, () => {
    const match = matchPod(pods, c.wanted, "n1");
    const got =
      match.kind === "found"
        ? `${match.pod.namespace}/${match.pod.name}`
        : match.kind === "none"
          ? { near: match.near }
          : match.names;
    if (c.name === "nothing near lists some") assert.equal(match.kind === "none" && match.near.length, 4);
    else assert.deepEqual(got, c.want);
  });
}

test("match: of two pods with one name the newest wins", () => {
  const match = matchPod(
    [summary("a", { uid: "old", seenAt: 1 }), summary("a", { uid: "new", seenAt: 2 })],
    { name: "a" },
    "",
  );
  assert.equal(match.kind === "found" && match.pod.uid, "new");
});

class FakeAgent implements AgentView {
  pods: PodSummary[] = [];
  containers: ContainerSummary[] = [];
  recorded: PodEvent[] = [];
  paths: Record<string, string> = {};
  requests: LogRequest[] = [];
  private readonly listeners = new Set<(uid: string) => void>();

  summaries = () => this.pods;
  summary = (uid: string) => this.pods.find((pod) => pod.uid === uid);
  events = (since: number) => this.recorded.filter((event) => event.sequence > since);
  logPath = (_uid: string, which: { container: string; previous: boolean }) =>
    this.paths[which.container + (which.previous ? "-previous" : "")];

  /** Each question measures once more. */
  measured = 0;

  storage(uid: string): Promise<PodStorage | undefined> {
    this.measured++;
    const part = { kind: "emptyDir", name: uid, isMemory: false } as const;
    return Promise.resolve({ parts: [part], bytes: 0, inodes: 0, isFresh: true });
  }

  images = (): Promise<ImageReport> => Promise.reject(new Error("connection refused"));

  explain(uid: string): PodExplanation | undefined {
    const pod = this.pods.find((candidate) => candidate.uid === uid);
    return pod && { ...pod, containers: this.containers, steps: [], errors: [], events: [], warnings: [] };
  }

  onChange(fn: (uid: string) => void, { signal }: { signal: AbortSignal }): void {
    this.listeners.add(fn);
    signal.addEventListener("abort", () => this.listeners.delete(fn));
  }

  get listening(): number {
    return this.listeners.size;
  }

  changed(): void {
    for (const fn of this.listeners) fn("");
  }

  async *read(request: LogRequest): AsyncGenerator<Uint8Array> {
    this.requests.push(request);
    yield Buffer.from("log text\n");
  }
}

let sockets = 0;
async function withAgent(
  work: (agent: FakeAgent, client: UnixClient, clock: FakeClock) => Promise<void>,
): Promise<void> {
  const agent = new FakeAgent();
  const clock = new FakeClock();
  const path = join(dir, `${++sockets}.sock`);
  const server = localApiServer(
    {
      view: agent,
      logs: agent,
      clock,
      log: silent,
      storage: (uid) => agent.storage(uid),
      images: () => agent.images(),
    },
    { path, nodeName: "n1", version: "v0" },
  );
  const controller = new AbortController();
  assert.equal(await server.open(), true);
  const running = server.run(controller);
  try {
    await work(agent, new UnixClient(path), clock);
  } finally {
    controller.abort();
    await running;
  }
}

const { signal } = new AbortController();

async function refusal(client: UnixClient, path: string): Promise<{ status: number | undefined } & Refusal> {
  try {
    await client.json(path, { signal });
  } catch (error) {
    assert.ok(error instanceof AgentError);
    return { status: error.details.status, ...(JSON.parse(error.details.body ?? "{}") as Refusal) };
  }
  return assert.fail(`${path} was answered`);
}

const running: ContainerSummary = {
  name: "web",
  kind: "regular",
  image: "demo",
  id: "c1",
  state: "running",
  reason: "",
  message: "",
  ready: true,
  restarts: 0,
};

test("the agent identifies itself", () =>
  withAgent(async (_agent, client) => {
    assert.deepEqual(await client.json("/v1/agent", { signal }), { pid: process.pid, version: "v0", nodeName: "n1" });
  }));

test("pods are listed, and explained by any of their names", () =>
  withAgent(async (agent, client) => {
    agent.pods = [summary("web-n1")];
    assert.deepEqual(await client.json("/v1/pods", { signal }), agent.pods);
    for (const path of ["/v1/pods/web", "/v1/pods/web-n1", "/v1/pods/default/web", "/v1/pods/default/web-n1"]) {
      assert.equal((await client.json<PodExplanation>(path, { signal })).name, "web-n1", path);
    }
  }));

test("what a pod keeps on disk is measured only for those who ask for it", () =>
  withAgent(async (agent, client) => {
    agent.pods = [summary("web-n1")];
    assert.equal((await client.json<PodExplanation>("/v1/pods/web", { signal })).storage, undefined);
    assert.equal(agent.measured, 0);
    const { storage } = await client.json<PodExplanation>("/v1/pods/web?storage=true", { signal });
    assert.deepEqual(storage?.parts[0]?.name, "uid-web-n1");
    assert.equal(agent.measured, 1);
  }));

test("a name that matches no pod is a 404 with near ones", () =>
  withAgent(async (agent, client) => {
    agent.pods = [summary("web-n1"), summary("crash-n1")];
    assert.deepEqual(await refusal(client, "/v1/pods/wb"), {
      status: 404,
      message: 'pod "wb" not found',
      near: ["default/web-n1"],
    });
    assert.equal((await refusal(client, "/v1/logs/kube/web")).message, 'pod "kube/web" not found');
  }));

test("events come once, and with watch go on when new ones come", () =>
  withAgent(async (agent, client) => {
    const event = (sequence: number): PodEvent => ({
      sequence,
      type: "Normal",
      reason: "Started",
      message: "m",
      pod: summary("web"),
      count: 1,
      first: 1,
      last: 1,
    });
    agent.recorded = [event(1), event(2), event(3)];
    const once: number[] = [];
    for await (const { sequence } of client.lines<PodEvent>("/v1/events?since=1", { signal })) once.push(sequence);
    assert.deepEqual(once, [2, 3]);

    const watched: number[] = [];
    for await (const { sequence } of client.lines<PodEvent>("/v1/events?since=2&watch=true", { signal })) {
      watched.push(sequence);
      if (watched.length === 3) break;
      agent.recorded = [...agent.recorded, event(3 + watched.length)];
      agent.changed();
    }
    assert.deepEqual(watched, [3, 4, 5]);
    while (agent.listening > 0) await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await refusal(client, "/v1/events?since=x")).status, 400);
  }));

test("with progress, running pulls come as passing events, each time that they are new", () =>
  withAgent(async (agent, client) => {
    const pulling = (doneBytes: number): void => {
      const step = {
        step: "pull",
        container: "app",
        since: 1,
        detail: "a:1: pulling",
        progress: { doneBytes },
      } as const;
      agent.pods = [summary("web", { step }), summary("idle")];
    };
    pulling(1);
    const seen: PodEvent[] = [];
    const path = "/v1/events?watch=true&progress=true";
    for await (const event of client.lines<PodEvent>(path, { signal })) {
      seen.push(event);
      if (seen.length === 2) break;
      agent.changed();
      pulling(2);
      agent.changed();
    }
    const { pod: _pod, last: _last, ...first } = seen[0] ?? ({} as PodEvent);
    assert.deepEqual(first, {
      sequence: 0,
      type: "Normal",
      reason: "PullProgress",
      message: "a:1: pulling",
      container: "app",
      count: 1,
      first: 1,
      progress: { doneBytes: 1 },
    });
    assert.equal(seen[1]?.progress?.doneBytes, 2);
    while (agent.listening > 0) await new Promise((resolve) => setImmediate(resolve));
  }));

test("the watch sends all pods first and then only what changed", () =>
  withAgent(async (agent, client, clock) => {
    agent.pods = [summary("a"), summary("b")];
    const lines = client.lines<PodChanges>("/v1/watch", { signal });
    const first = (await lines.next()).value as PodChanges;
    assert.deepEqual(
      first.set.map((pod) => pod.name),
      ["a", "b"],
    );
    agent.pods = [summary("a"), summary("c")];
    agent.changed();
    const next = lines.next();
    for (let done = false; !done; ) {
      await clock.advance(100);
      done = await Promise.race([
        next.then(() => true),
        new Promise<boolean>((resolve) => setImmediate(() => resolve(false))),
      ]);
    }
    const { set, gone } = (await next).value as PodChanges;
    assert.deepEqual([set.map((pod) => pod.name), gone], [["c"], ["uid-b"]]);
    await lines.return(undefined);
  }));

test("a log is read with the options of the query", () =>
  withAgent(async (agent, client) => {
    agent.pods = [summary("web-n1")];
    agent.containers = [running];
    agent.paths = { web: "/l/1.log", "web-previous": "/l/0.log" };
    const text = async (path: string): Promise<string> => {
      let all = "";
      for await (const chunk of client.bytes(path, { signal })) all += chunk.toString();
      return all;
    };
    assert.equal(await text("/v1/logs/web?tail=5"), "log text\n");
    await text("/v1/logs/default/web-n1?container=web&previous=true&follow=true");
    await text("/v1/logs/web?follow=true");
    const [plain, previous, followed] = agent.requests;
    assert.deepEqual(plain, { path: "/l/1.log", tail: 5 });
    assert.deepEqual(previous, { path: "/l/0.log" }, "a dead instance is not followed");
    assert.equal(followed?.follow?.ended(), false);
    agent.paths["web"] = "/l/2.log";
    assert.equal(followed?.follow?.ended(), true, "a restarted container ends the follow");
    agent.paths["web"] = "/l/1.log";
    agent.containers = [{ ...running, state: "terminated" }];
    assert.equal(followed?.follow?.ended(), true);
  }));

const noLog = [
  {
    name: "unknown container",
    query: "?container=wbe",
    containers: [running],
    says: 'pod web-n1 has no container "wbe"',
    status: 404,
  },
  {
    name: "several containers",
    query: "",
    containers: [running, { ...running, name: "side" }],
    says: "pod web-n1 has 2 containers; choose one with -c NAME",
    status: 400,
  },
  {
    name: "not started yet",
    query: "",
    containers: [{ ...running, state: "waiting", reason: "ImagePullBackOff" } as const],
    says: "container web is waiting to start (ImagePullBackOff)",
    status: 400,
  },
  {
    name: "no previous",
    query: "?previous=true",
    containers: [running],
    says: "container web has no previous instance with a log",
    status: 400,
  },
  {
    name: "a bad tail",
    query: "?tail=-1",
    containers: [running],
    says: 'tail must be a number of lines, not "-1"',
    status: 400,
  },
  { name: "no containers", query: "", containers: [], says: "pod web-n1 has no container yet", status: 400 },
];
for (const c of noLog) {
  test(`no log: ${c.name}`, () =>
    withAgent(async (agent, client) => {
      agent.pods = [summary("web-n1")];
      agent.containers = [...c.containers];
      const { status, message } = await refusal(client, `/v1/logs/web${c.query}`);
      assert.deepEqual({ status, message }, { status: c.status, message: c.says });
    }));
}

test("images are reported, and why they cannot be", async () => {
  const report: ImageReport = {
    images: [],
    highThresholdPercent: 85,
    lowThresholdPercent: 80,
    minimumAgeMs: 0,
    maximumAgeMs: 0,
    bytesToFree: 0,
    collected: { images: 0, bytes: 0 },
  };
  await withAgent(async (agent, client) => {
    await assert.rejects(client.json("/v1/images", { signal }), /503|connection refused/);
    agent.images = () => Promise.resolve(report);
    assert.deepEqual(await client.json("/v1/images", { signal }), report);
  });
});
