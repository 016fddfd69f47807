/** Pods from a URL, and the agent that starts pods once and ends. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { after, before, describe, it } from "node:test";
import { stringify } from "yaml";
import type { Pod } from "../../src/model/generated/types.ts";
import { POD_NAME_LABEL } from "../../src/model/labels.ts";
import type { PodEvent } from "../../src/model/step.ts";
import { freePort } from "../support/free-port.ts";
import { manifest, shell } from "./support/manifests.ts";
import { type Ended, kubelet } from "./support/program.ts";
import { type Agent, ids, isRunning, NODE, requireMachine, Site, shortName } from "./support/site.ts";
import { until } from "./support/until.ts";

requireMachine();

/** A web server that tests tell what to answer. */
class ManifestServer {
  readonly requests: IncomingMessage[] = [];
  answer: { status: number; body: string } = { status: 200, body: "" };
  etag: string | undefined;
  /** Requests that were answered with "not modified". */
  spared = 0;
  private server: Server | undefined;

  constructor(private readonly port: number) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}/pods`;
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.server = createServer((request, response) => this.serve(request, response));
      this.server.once("error", reject).listen(this.port, "127.0.0.1", resolve);
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      if (this.server === undefined) return resolve();
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }

  /** Waits until what is answered now has been asked for: twice, because one request may be on its way. */
  async asked(): Promise<void> {
    const before = this.requests.length;
    await until("two more requests", () => this.requests.length >= before + 2);
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    this.requests.push(request);
    if (this.etag !== undefined) response.setHeader("ETag", this.etag);
    if (this.etag !== undefined && request.headers["if-none-match"] === this.etag) {
      this.spared++;
      response.writeHead(304).end();
    } else response.writeHead(this.answer.status).end(this.answer.body);
  }
}

function listOf(...items: Pod[]): { status: number; body: string } {
  return { status: 200, body: JSON.stringify({ apiVersion: "v1", kind: "PodList", items }) };
}

describe("pods from a URL", () => {
  const site = new Site();
  let server: ManifestServer;
  let agent: Agent;
  const fast = "--http-check-frequency=150ms";

  before(async () => {
    server = new ManifestServer(await freePort());
    server.answer = { status: 200, body: stringify(manifest("one")) };
    await server.open();
    agent = await site.up([`--manifest-url=${server.url}`, "--manifest-url-header=X-Key:abc,X-More:d e", fast]);
  });
  after(async () => {
    await server.close();
    await site.close();
  });

  /** A report about the URL, newer than `since`. */
  const reported = (since: number, words: RegExp): Promise<PodEvent> =>
    until(`a report like ${words}`, async () =>
      (await site.events()).find(
        ({ reason, message, sequence, pod }) =>
          reason === "InvalidManifest" && sequence > since && pod.name.startsWith(server.url) && words.test(message),
      ),
    );
  const lastEvent = async (): Promise<number> => Math.max(0, ...(await site.events()).map(({ sequence }) => sequence));

  it("one pod runs, and the headers were sent", async () => {
    const pod = await site.running("one");
    assert.equal(pod.source, "http");
    const { headers } = server.requests[0] ?? {};
    assert.deepEqual([headers?.["x-key"], headers?.["x-more"]], ["abc", "d e"]);
  });

  it("a list of pods runs, and what stayed the same is not touched", async () => {
    const before = await site.running("one");
    server.answer = listOf(manifest("one"), manifest("two"));
    await site.running("two");
    assert.deepEqual(ids(await site.running("one")), ids(before));
  });

  it("a change replaces only the pod that changed", async () => {
    const [one, two] = [await site.running("one"), await site.running("two")];
    server.answer = listOf(manifest("one"), manifest("two", { hostname: "other" }));
    await site.pod("two", "is another", (pod) => isRunning(pod) && pod.uid !== two.uid);
    assert.deepEqual(ids(await site.running("one")), ids(one));
  });

  it("broken, failing and unreachable: the last good pods run on, and it is said", async () => {
    const before = [ids(await site.running("one")), ids(await site.running("two"))];
    const good = server.answer;
    const bad: readonly (readonly [string, { status: number; body: string }, RegExp])[] = [
      ["no YAML", { status: 200, body: "kind: [Pod" }, /./],
      ["no pod", { status: 200, body: "apiVersion: v1\nkind: Secret\n" }, /Secret/],
      ["an error", { status: 500, body: "" }, /500/],
    ];
    for (const [, answer, words] of bad) {
      const since = await lastEvent();
      server.answer = answer;
      await reported(since, words);
    }
    const since = await lastEvent();
    await server.close();
    await reported(since, /ECONNREFUSED/);
    server.answer = good;
    await server.open();
    await server.asked();
    assert.deepEqual([ids(await site.running("one")), ids(await site.running("two"))], before);
    assert.doesNotMatch(JSON.stringify(await site.events()), /abc/, "the header's value is a secret");
  });

  it("content with a tag is not sent again", async () => {
    server.etag = '"v1"';
    await until("spared requests", () => server.spared >= 2);
    server.etag = undefined;
  });

  it("a pod that the list no longer has goes", async () => {
    server.answer = listOf(manifest("one"));
    await site.gone("two");
    await site.running("one");
  });

  it("ends with its agent, not the pods", async () => {
    await agent.end("SIGINT");
    assert.deepEqual([...(await runningPods()).keys()], ["one"]);
  });

  /** The runtime's word: the running container of each pod; a pod with two is named twice. */
  const runningPods = async (): Promise<Map<string, string>> => {
    const found = new Map<string, string>();
    for (const { id, state, labels } of await site.containers()) {
      const name = shortName(labels[POD_NAME_LABEL] ?? "");
      if (state === "running") found.set(found.has(name) ? `${name} again` : name, id);
    }
    return found;
  };
  const runOnce = (): Promise<Ended> =>
    kubelet([
      "--runonce",
      `--hostname-override=${NODE}`,
      `--pod-manifest-path=${site.pods}`,
      `--manifest-url=${server.url}`,
      `--container-runtime-endpoint=unix://${site.layout.socket}`,
      `--root-dir=${site.state}/kubelet`,
      `--pod-logs-dir=${site.state}/log/pods`,
      `--cgroup-root=${site.layout.cgroupRoot}`,
      "--healthz-port=0",
      "--read-only-port=0",
    ]);
  const resultLines = ({ stdout }: Ended): string[] =>
    stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.replace(/^(\S+)\s+default\/(\S+)-here {2}/, "$1 $2 "))
      .sort();

  /** Never ready: however late its end is noticed, it does not count as running meanwhile. */
  const unready = { readinessProbe: { tcpSocket: { port: 1 }, initialDelaySeconds: 3600 } };

  it("--runonce takes both sources, tells a line a pod and ends with 0; the pods go on", async () => {
    const before = await runningPods();
    site.write(manifest("server"));
    site.write(manifest("job", { restartPolicy: "Never", containers: [shell("main", "exit 0", unready)] }));
    const result = await runOnce();
    assert.equal(result.code, 0, result.stderr);
    assert.deepEqual(resultLines(result), ["ok job succeeded", "ok one running", "ok server running"]);
    // containerd tells of an end a moment before its own list does.
    const running = await until("only the servers run", async () => {
      const found = await runningPods();
      return [...found.keys()].sort().join() === "one,server" && found;
    });
    assert.equal(running.get("one"), before.get("one"), "the pod that ran already was adopted");
  });

  it("--runonce ends with 1 when a pod fails, and says why", async () => {
    site.write(manifest("broken", { restartPolicy: "Never", containers: [shell("main", "exit 7", unready)] }));
    const result = await runOnce();
    assert.equal(result.code, 1);
    assert.deepEqual(resultLines(result), [
      "FAILED broken main exited with code 7",
      "ok job succeeded",
      "ok one running",
      "ok server running",
    ]);
  });

  it("an agent that stays takes over what --runonce started", async () => {
    const running = await runningPods();
    await site.up([`--manifest-url=${server.url}`, fast]);
    for (const name of ["one", "server"]) {
      const pod = await site.running(name);
      assert.equal(pod.containers[0]?.id, `containerd://${running.get(name)}`, name);
    }
    await site.pod("job", "is done", ({ phase }) => phase === "Succeeded");
    await site.pod("broken", "is failed", ({ phase }) => phase === "Failed");
  });
});
