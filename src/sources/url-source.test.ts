import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortedError } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { LiveValue } from "../lib/live.ts";
import type { Snapshot, SourceProblem } from "./snapshot.ts";
import { type FetchManifest, type ManifestAnswer, UrlSource, type UrlSourceOptions } from "./url-source.ts";

type Answer = ManifestAnswer | Error | "hang";

function manifest(...names: string[]): string {
  const items = names.map((name) => ({ metadata: { name }, spec: { containers: [{ name: "c", image: "i" }] } }));
  return JSON.stringify({ apiVersion: "v1", kind: "PodList", items });
}

function content(body: string, etag = ""): ManifestAnswer {
  return { kind: "content", body, etag };
}

class Rig {
  readonly clock = new FakeClock();
  readonly snapshots: Snapshot[] = [];
  readonly problems: SourceProblem[] = [];
  readonly requests: { url: string; etag: string; headers: unknown; maxBytes: number }[] = [];
  readonly options = new LiveValue<UrlSourceOptions>({
    url: "http://user:pw@host/pods",
    headers: { "X-Key": ["a", "b"] },
    nodeName: "n",
    checkFrequencyMs: 20_000,
  });
  answer: Answer = content("");
  parses = 0;
  private readonly controller = new AbortController();
  private running: Promise<void> = Promise.resolve();

  start(): Promise<void> {
    const fetchManifest: FetchManifest = async (url, { signal, ...rest }) => {
      this.requests.push({ url, ...rest });
      if (this.answer instanceof Error) throw this.answer;
      if (this.answer !== "hang") return this.answer;
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    };
    const source = new UrlSource(
      {
        clock: this.clock,
        fetchManifest,
        parse: async (text) => {
          this.parses++;
          return { documents: [{ value: JSON.parse(text) as unknown, line: 1 }], warnings: [] };
        },
        publish: (snapshot) => this.snapshots.push(snapshot),
        report: (problem) => this.problems.push(problem),
      },
      this.options,
    );
    this.running = source.run(this.controller.signal);
    return this.clock.advance(0);
  }

  /** The next answer, after one period. */
  next(answer: Answer): Promise<void> {
    this.answer = answer;
    return this.clock.advance(20_000);
  }

  async stop(): Promise<void> {
    this.controller.abort(new AbortedError());
    await this.running;
    assert.equal(this.clock.waiting, 0, "no timer is left");
  }

  get history(): string[] {
    return this.snapshots.map(({ pods }) => pods.map(({ pod }) => pod.metadata.name).join(" "));
  }
}

function rule(name: string, work: (rig: Rig) => Promise<void>): void {
  test(name, async () => {
    const rig = new Rig();
    await work(rig);
    await rig.stop();
  });
}

rule("pods of the first answer are published as of source http, without a toleration", async (rig) => {
  rig.answer = content(manifest("a", "b"));
  await rig.start();
  assert.deepEqual(rig.history, ["a-n b-n"]);
  assert.equal(rig.snapshots[0]?.source, "http");
  assert.equal(rig.snapshots[0]?.pods[0]?.pod.spec.tolerations, undefined);
  assert.deepEqual(rig.requests[0], {
    url: "http://user:pw@host/pods",
    etag: "",
    headers: { "X-Key": ["a", "b"] },
    maxBytes: 10 * 1024 * 1024,
  });
});

rule("unchanged bytes are not parsed again, and the tag is sent back", async (rig) => {
  rig.answer = content(manifest("a"), '"1"');
  await rig.start();
  await rig.next(content(manifest("a"), '"2"'));
  await rig.next({ kind: "unchanged" });
  assert.equal(rig.parses, 1);
  assert.deepEqual(rig.history, ["a-n"]);
  assert.deepEqual(
    rig.requests.map(({ etag }) => etag),
    ["", '"1"', '"2"'],
  );
});

rule("a changed answer is published", async (rig) => {
  rig.answer = content(manifest("a"));
  await rig.start();
  await rig.next(content(manifest("b")));
  assert.deepEqual(rig.history, ["a-n", "b-n"]);
});

rule("an empty body is an empty list", async (rig) => {
  rig.answer = content(" \n");
  await rig.start();
  await rig.next(content(manifest("a")));
  await rig.next(content(""));
  assert.deepEqual(rig.history, ["", "a-n", ""]);
  assert.deepEqual(rig.problems, []);
});

rule("an unreachable or broken URL keeps the pods and says so once, without the password", async (rig) => {
  rig.answer = content(manifest("a"));
  await rig.start();
  await rig.next(new Error("connection refused"));
  await rig.next(new Error("connection refused"));
  await rig.next(content("{"));
  await rig.next(content("{"));
  assert.deepEqual(rig.history, ["a-n"]);
  assert.equal(rig.problems.length, 2);
  assert.deepEqual(rig.problems[0], { file: "http://host/pods", message: "connection refused" });
});

rule("after a failure the same content is not published again, and a failure after it is told again", async (rig) => {
  rig.answer = content(manifest("a"));
  await rig.start();
  await rig.next(new Error("down"));
  await rig.next(content(manifest("a")));
  await rig.next(new Error("down"));
  assert.deepEqual(rig.history, ["a-n"]);
  assert.equal(rig.parses, 1);
  assert.equal(rig.problems.length, 2);
});

rule("nothing is published before the first good answer", async (rig) => {
  rig.answer = new Error("down");
  await rig.start();
  await rig.next(content("{"));
  assert.deepEqual(rig.history, []);
  await rig.next(content(manifest("a")));
  assert.deepEqual(rig.history, ["a-n"]);
});

rule("a request is given up after 10 s", async (rig) => {
  rig.answer = "hang";
  await rig.start();
  await rig.clock.advance(9_999);
  assert.equal(rig.problems.length, 0);
  await rig.clock.advance(1);
  assert.equal(rig.problems[0]?.message, "no complete answer within 10 s");
  rig.answer = content(manifest("a"));
  await rig.clock.advance(20_000);
  assert.deepEqual(rig.history, ["a-n"]);
});

rule("stopping does not wait for an answer", async (rig) => {
  rig.answer = "hang";
  await rig.start();
});

rule("a new period or URL counts at once; without a URL there are no pods", async (rig) => {
  rig.answer = content(manifest("a"), '"1"');
  await rig.start();
  rig.options.set({ ...rig.options.current, url: "http://other/" });
  await rig.clock.advance(0);
  assert.equal(rig.requests.length, 2);
  assert.equal(rig.requests[1]?.etag, "", "the tag of one URL is not sent to another");
  rig.options.set({ ...rig.options.current, url: "" });
  await rig.clock.advance(0);
  assert.equal(rig.requests.length, 2);
  assert.equal(rig.history.at(-1), "");
});
