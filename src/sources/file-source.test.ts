import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortedError } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { LiveValue } from "../lib/live.ts";
import { FileSource, type FileSourceOptions } from "./file-source.ts";
import type { FileFacts, ManifestFiles } from "./manifest-file.ts";
import type { WatchChange } from "./pending-changes.ts";
import type { Snapshot, SourceProblem } from "./snapshot.ts";

/** Files in memory; a write makes a new stamp. Faults are set per path. */
class FakeFiles implements ManifestFiles {
  readonly texts = new Map<string, string>();
  readonly directories = new Set<string>();
  readonly others = new Set<string>();
  readonly faults = new Map<string, string>();
  readonly sizes = new Map<string, number>();
  private readonly stamps = new Map<string, number>();
  private clock = 0;
  reads = 0;
  onRead: (path: string) => void = () => undefined;
  /** Reads of these take until the promise resolves. */
  readonly slow = new Map<string, Promise<void>>();

  write(path: string, text: string): void {
    this.texts.set(path, text);
    this.stamps.set(path, ++this.clock);
  }

  async stat(path: string): Promise<FileFacts | undefined> {
    this.check(path);
    if (this.directories.has(path)) return { kind: "directory", size: 0, stamp: "d" };
    if (this.others.has(path)) return { kind: "other", size: 0, stamp: "o" };
    const text = this.texts.get(path);
    if (text === undefined) return undefined;
    return { kind: "file", size: this.sizes.get(path) ?? text.length, stamp: String(this.stamps.get(path)) };
  }

  async list(path: string): Promise<readonly string[]> {
    this.check(path);
    const all = [...this.texts.keys(), ...this.directories, ...this.others];
    return all.filter((name) => name.startsWith(`${path}/`)).map((name) => name.slice(path.length + 1));
  }

  async read(path: string): Promise<string> {
    this.check(path);
    this.reads++;
    const text = this.texts.get(path);
    if (text === undefined) throw Object.assign(new Error("gone"), { code: "ENOENT" });
    this.onRead(path);
    await this.slow.get(path);
    return text;
  }

  private check(path: string): void {
    const fault = this.faults.get(path);
    if (fault !== undefined) throw Object.assign(new Error(fault), { code: "EACCES" });
  }
}

function manifest(name: string, image = "i:1"): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { containers: [{ name: "c", image }] },
  });
}

async function parseJson(text: string) {
  if (text.trim() === "") return { documents: [], warnings: [] };
  return {
    documents: text.split("\n---\n").map((part) => ({ value: JSON.parse(part) as unknown, line: 1 })),
    warnings: [],
  };
}

class Rig {
  readonly files = new FakeFiles();
  readonly clock = new FakeClock();
  readonly snapshots: Snapshot[] = [];
  readonly problems: SourceProblem[] = [];
  readonly options = new LiveValue<FileSourceOptions>({ path: "/pods", nodeName: "n", checkFrequencyMs: 20_000 });
  readonly watched: string[] = [];
  private readonly controller = new AbortController();
  private onChange: (change: WatchChange) => void = () => undefined;
  private running: Promise<void> = Promise.resolve();

  start(): Promise<void> {
    const source = new FileSource(
      {
        files: this.files,
        clock: this.clock,
        parse: parseJson,
        watch: async (path, { onChange, signal }) => {
          this.watched.push(path);
          this.onChange = (change) => {
            if (!signal.aborted) onChange(change);
          };
        },
        publish: (snapshot) => this.snapshots.push(snapshot),
        report: (problem) => this.problems.push(problem),
      },
      this.options,
    );
    this.running = source.run(this.controller.signal);
    return this.clock.advance(0);
  }

  /** Tells changes of the watch, all at once, and lets the source work. */
  tell(...changes: [WatchChange["kind"], string][]): Promise<void> {
    for (const [kind, name] of changes) this.onChange({ kind, name });
    return this.clock.advance(0);
  }

  async stop(): Promise<void> {
    this.controller.abort(new AbortedError());
    await this.running;
    assert.equal(this.clock.waiting, 0, "no timer is left");
  }

  /** Pod names of all snapshots, oldest first; a `?` where the source may want more than it names. */
  get history(): string[] {
    return this.snapshots.map(({ pods, isIncomplete }) =>
      [...pods.map(({ pod }) => pod.metadata.name), ...(isIncomplete ? ["?"] : [])].join(" "),
    );
  }

  get last(): string | undefined {
    return this.history.at(-1)?.replace(/ ?\?$/, "");
  }

  get messages(): string[] {
    return this.problems.map(({ file, message }) => `${file}: ${message}`);
  }
}

function rule(name: string, work: (rig: Rig) => Promise<void>): void {
  test(name, async () => {
    const rig = new Rig();
    rig.files.directories.add("/pods");
    await work(rig);
    await rig.stop();
  });
}

rule("a directory's files are read in order; hidden files, directories and devices are not", async (rig) => {
  rig.files.write("/pods/b.json", manifest("b"));
  rig.files.write("/pods/a.json", manifest("a"));
  rig.files.write("/pods/.hidden.json", manifest("h"));
  rig.files.directories.add("/pods/sub");
  rig.files.others.add("/pods/pipe");
  await rig.start();
  assert.deepEqual(rig.history, ["a-n b-n"]);
  assert.deepEqual(rig.problems, []);
  assert.equal(rig.snapshots[0]?.source, "file");
});

rule("a hidden file stays unread when the watch tells of it", async (rig) => {
  await rig.start();
  rig.files.write("/pods/.x.json", manifest("x"));
  await rig.tell(["appeared", ".x.json"]);
  assert.deepEqual(rig.history, [""]);
});

rule("a missing path is an empty list, and is read when it appears", async (rig) => {
  rig.files.directories.clear();
  await rig.start();
  assert.deepEqual(rig.history, [""]);
  rig.files.directories.add("/pods");
  rig.files.write("/pods/a.json", manifest("a"));
  await rig.tell(["rescan", ""]);
  assert.deepEqual(rig.history, ["", "a-n"]);
});

rule("a single file can be the path", async (rig) => {
  rig.files.directories.clear();
  rig.files.write("/pods", `${manifest("a")}\n---\n${manifest("b")}`);
  await rig.start();
  assert.deepEqual(rig.history, ["a-n b-n"]);
  rig.files.write("/pods", manifest("a"));
  await rig.tell(["changed", "pods"]);
  assert.equal(rig.last, "a-n");
  rig.files.texts.delete("/pods");
  await rig.tell(["removed", "pods"]);
  assert.equal(rig.last, "");
});

rule("a change is published at once, an unchanged rewrite is not", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  await rig.start();
  rig.files.write("/pods/a.json", manifest("a"));
  await rig.tell(["changed", "a.json"]);
  assert.equal(rig.snapshots.length, 1);
  rig.files.write("/pods/a.json", manifest("a", "i:2"));
  await rig.tell(["changed", "a.json"]);
  assert.equal(rig.snapshots.length, 2);
  const uids = rig.snapshots.map(({ pods }) => pods[0]?.pod.metadata.uid);
  assert.notEqual(uids[0], uids[1]);
});

rule("a change that kept size and time is seen when the watch tells of it", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a", "i:1"));
  await rig.start();
  rig.files.texts.set("/pods/a.json", manifest("a", "i:2"));
  await rig.tell(["changed", "a.json"]);
  assert.equal(rig.snapshots.length, 2);
});

rule("a removed file that is back at once is a snapshot without it and one with it", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  rig.files.write("/pods/b.json", manifest("b"));
  await rig.start();
  await rig.tell(["removed", "a.json"], ["appeared", "a.json"]);
  assert.deepEqual(rig.history, ["a-n b-n", "b-n", "a-n b-n"]);
  const uid = (at: number) => rig.snapshots[at]?.pods.find(({ pod }) => pod.metadata.name === "a-n")?.pod.metadata.uid;
  assert.equal(uid(0), uid(2));
});

rule("a removal told while another file is being read is not lost", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  await rig.start();
  rig.files.write("/pods/b.json", manifest("b"));
  rig.files.onRead = (path) => {
    if (path !== "/pods/b.json") return;
    rig.files.onRead = () => undefined;
    void rig.tell(["removed", "a.json"], ["appeared", "a.json"]);
  };
  await rig.tell(["appeared", "b.json"]);
  assert.deepEqual(rig.history, ["a-n", "a-n b-n", "b-n", "a-n b-n"]);
});

rule("a broken file is reported once and its last good pods stay", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  await rig.start();
  for (const text of ["", "", "{", "{"]) {
    rig.files.write("/pods/a.json", text);
    await rig.tell(["changed", "a.json"]);
  }
  await rig.clock.advance(60_000);
  assert.deepEqual(rig.history, ["a-n", "a-n ?"]);
  assert.equal(rig.problems.length, 2);
  assert.match(rig.messages[0] ?? "", /^\/pods\/a.json: the manifest is empty/);
});

rule("a repaired file that breaks again in the same way is reported again", async (rig) => {
  await rig.start();
  for (const text of ["{", manifest("a"), "{"]) {
    rig.files.write("/pods/a.json", text);
    await rig.tell(["changed", "a.json"]);
  }
  assert.equal(rig.problems.length, 2);
  assert.equal(rig.last, "a-n");
});

rule("a broken document does not stop the pods of the others", async (rig) => {
  rig.files.write("/pods/a.json", `${manifest("a")}\n---\n${manifest("b")}`);
  await rig.start();
  rig.files.write("/pods/a.json", `${manifest("a", "i:2")}\n---\n${manifest("b", "")}`);
  await rig.tell(["changed", "a.json"]);
  assert.equal(rig.last, "a-n b-n");
  assert.equal(rig.snapshots.at(-1)?.pods[0]?.pod.spec.containers[0]?.image, "i:2");
  assert.equal(rig.snapshots.at(-1)?.pods[1]?.pod.spec.containers[0]?.image, "i:1");
});

rule("removing a broken file removes its last good pods", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  await rig.start();
  rig.files.write("/pods/a.json", "{");
  await rig.tell(["changed", "a.json"]);
  rig.files.texts.delete("/pods/a.json");
  await rig.tell(["removed", "a.json"]);
  assert.deepEqual(rig.history, ["a-n", "a-n ?", ""]);
});

rule("a file over 10 MiB is refused unread", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  rig.files.sizes.set("/pods/a.json", 10 * 1024 * 1024 + 1);
  await rig.start();
  assert.equal(rig.files.reads, 0);
  assert.deepEqual(rig.messages, ["/pods/a.json: 10485761 bytes are too large; a manifest has at most 10 MiB"]);
  assert.deepEqual(rig.history, ["?"]);
});

rule("a file that changes while it is read is read again", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a", "i:1"));
  rig.files.onRead = (path) => {
    rig.files.onRead = () => undefined;
    rig.files.write(path, manifest("a", "i:2"));
  };
  await rig.start();
  assert.equal(rig.snapshots.length, 1);
  assert.equal(rig.snapshots[0]?.pods[0]?.pod.spec.containers[0]?.image, "i:2");
});

rule("a file that never stops changing is reported, and read at the next look", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  rig.files.onRead = (path) => rig.files.write(path, manifest("a"));
  await rig.start();
  assert.deepEqual(rig.messages, ["/pods/a.json: the file changes while it is read"]);
  rig.files.onRead = () => undefined;
  await rig.clock.advance(20_000);
  assert.equal(rig.last, "a-n");
});

rule("a file that cannot be read keeps its pods; a file that vanished between does not", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  rig.files.write("/pods/b.json", manifest("b"));
  await rig.start();
  rig.files.faults.set("/pods/a.json", "permission denied");
  rig.files.texts.delete("/pods/b.json");
  await rig.tell(["changed", "a.json"], ["changed", "b.json"]);
  assert.equal(rig.last, "a-n");
  assert.deepEqual(rig.messages, ["/pods/a.json: cannot be read: permission denied"]);
});

rule("two files with one pod name: the first in order counts, the second is reported once", async (rig) => {
  rig.files.write("/pods/b.json", manifest("same", "i:2"));
  await rig.start();
  rig.files.write("/pods/a.json", manifest("same", "i:1"));
  await rig.tell(["appeared", "a.json"]);
  assert.equal(rig.snapshots.at(-1)?.pods.length, 1);
  assert.equal(rig.snapshots.at(-1)?.pods[0]?.pod.spec.containers[0]?.image, "i:1");
  await rig.clock.advance(40_000);
  await rig.tell(["changed", "b.json"]);
  assert.equal(rig.problems.length, 1);
  assert.match(rig.messages[0] ?? "", /^\/pods\/b.json: pod default\/same-n is in a.json already and is ignored here/);
  rig.files.texts.delete("/pods/a.json");
  await rig.tell(["removed", "a.json"]);
  assert.equal(rig.snapshots.at(-1)?.pods[0]?.pod.spec.containers[0]?.image, "i:2");
});

rule("a directory that cannot be read keeps everything", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  await rig.start();
  rig.files.faults.set("/pods", "input/output error");
  await rig.clock.advance(60_000);
  assert.deepEqual(rig.history, ["a-n"]);
  assert.deepEqual(rig.messages, ["/pods: cannot be read: input/output error"]);
});

rule("a directory that cannot be read at the start publishes nothing until it can", async (rig) => {
  rig.files.faults.set("/pods", "permission denied");
  await rig.start();
  assert.deepEqual(rig.history, []);
  rig.files.faults.clear();
  await rig.clock.advance(20_000);
  assert.deepEqual(rig.history, [""]);
});

rule("what the watch missed is found by the periodic look, without reading what did not change", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  await rig.start();
  rig.files.write("/pods/b.json", manifest("b"));
  await rig.clock.advance(19_999);
  assert.equal(rig.last, "a-n");
  await rig.clock.advance(1);
  assert.equal(rig.last, "a-n b-n");
  rig.files.texts.delete("/pods/a.json");
  const { reads } = rig.files;
  await rig.clock.advance(20_000);
  assert.equal(rig.last, "b-n");
  assert.equal(rig.files.reads, reads);
});

rule("a swapped directory is one snapshot with what is there now", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  rig.files.write("/pods/b.json", manifest("b"));
  await rig.start();
  rig.files.texts.delete("/pods/a.json");
  rig.files.write("/pods/b.json", manifest("b"));
  rig.files.write("/pods/c.json", manifest("c"));
  await rig.tell(["rescan", ""]);
  assert.deepEqual(rig.history, ["a-n b-n", "b-n c-n"]);
  assert.equal(rig.snapshots[0]?.pods[1], rig.snapshots[1]?.pods[0], "an unchanged pod is the same one");
});

rule("a new period counts at once, a new path is watched and read", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  rig.files.directories.add("/other");
  rig.files.write("/other/o.json", manifest("o"));
  await rig.start();
  rig.options.set({ ...rig.options.current, checkFrequencyMs: 1000 });
  await rig.clock.advance(0);
  assert.equal(rig.clock.nextIn, 1000);
  rig.options.set({ ...rig.options.current, path: "/other" });
  await rig.clock.advance(0);
  assert.equal(rig.last, "o-n");
  assert.deepEqual(rig.watched, ["/pods", "/other"]);
  rig.options.set({ ...rig.options.current, path: "" });
  await rig.clock.advance(0);
  assert.equal(rig.last, "");
});

/** A file whose reading takes until `finish` is called. */
function slowFile(rig: Rig, path: string, text: string): { finish(): Promise<void> } {
  let release = (): void => undefined;
  rig.files.slow.set(path, new Promise((resolve) => (release = resolve)));
  rig.files.write(path, text);
  return {
    finish: () => {
      rig.files.slow.delete(path);
      release();
      return rig.clock.advance(0);
    },
  };
}

rule("a file that takes long to read holds nobody up, and what it may want is left open", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a"));
  const slow = slowFile(rig, "/pods/big.json", manifest("big"));
  await rig.start();
  await rig.clock.advance(300);
  assert.deepEqual(rig.history, ["a-n ?"]);
  rig.files.write("/pods/c.json", manifest("c"));
  await rig.tell(["appeared", "c.json"]);
  assert.deepEqual(rig.history, ["a-n ?", "a-n c-n ?"]);
  await slow.finish();
  assert.equal(rig.history.at(-1), "a-n big-n c-n");
});

rule("a slow file keeps its last content until it is read, and is read anew when it changes again", async (rig) => {
  rig.files.write("/pods/a.json", manifest("a", "i:1"));
  await rig.start();
  const slow = slowFile(rig, "/pods/a.json", manifest("a", "i:2"));
  await rig.tell(["changed", "a.json"]);
  await rig.clock.advance(300);
  assert.deepEqual(rig.history, ["a-n", "a-n ?"]);
  rig.files.slow.clear();
  rig.files.write("/pods/a.json", manifest("a", "i:3"));
  await rig.tell(["changed", "a.json"]);
  await slow.finish();
  const images = rig.snapshots.map(({ pods }) => pods[0]?.pod.spec.containers[0]?.image);
  assert.deepEqual(images, ["i:1", "i:1", "i:3"]);
});

rule("a slow file that is removed, or whose directory is left, is no more waited for", async (rig) => {
  const first = slowFile(rig, "/pods/a.json", manifest("a"));
  await rig.start();
  await rig.clock.advance(300);
  rig.files.texts.delete("/pods/a.json");
  await rig.tell(["removed", "a.json"]);
  assert.deepEqual(rig.history, ["?", ""]);
  await first.finish();
  const second = slowFile(rig, "/pods/b.json", manifest("b"));
  await rig.tell(["appeared", "b.json"]);
  await rig.clock.advance(300);
  rig.options.set({ ...rig.options.current, path: "" });
  await rig.clock.advance(0);
  await second.finish();
  assert.deepEqual(rig.history, ["?", "", "?", ""]);
});

test("a watch that cannot be made is reported, and the periodic look goes on", async () => {
  const clock = new FakeClock();
  const controller = new AbortController();
  const problems: SourceProblem[] = [];
  let count = 0;
  const files = new FakeFiles();
  files.directories.add("/pods");
  const options = new LiveValue<FileSourceOptions>({ path: "/pods", nodeName: "n", checkFrequencyMs: 20_000 });
  const watch = (): Promise<void> => Promise.reject(new Error("no watches left"));
  const publish = (): void => void count++;
  const report = (problem: SourceProblem): void => void problems.push(problem);
  const running = new FileSource({ files, clock, parse: parseJson, watch, publish, report }, options).run(
    controller.signal,
  );
  await clock.advance(0);
  files.write("/pods/a.json", manifest("a"));
  await clock.advance(20_000);
  assert.equal(count, 2);
  assert.match(problems[0]?.message ?? "", /no watches left/);
  controller.abort(new AbortedError());
  await running;
});

rule(
  "objects of all files come with the pods; a change of one is a snapshot, and a broken file keeps its last",
  async (rig) => {
    const object = (value: string): string =>
      JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, data: { value } });
    rig.files.write("/pods/a.json", manifest("a"));
    rig.files.write("/pods/c.json", object("1"));
    await rig.start();
    const values = (): unknown =>
      rig.snapshots.map(({ objects }) => objects.map(({ object: { data } }) => data?.value));
    assert.deepEqual(values(), [["1"]]);
    rig.files.write("/pods/c.json", object("2"));
    await rig.tell(["changed", "c.json"]);
    rig.files.write("/pods/c.json", "{");
    await rig.tell(["changed", "c.json"]);
    assert.deepEqual(values(), [["1"], ["2"], ["2"]]);
    rig.files.write("/pods/d.json", object("of another file"));
    await rig.tell(["appeared", "d.json"]);
    assert.match(rig.messages.at(-1) ?? "", /ConfigMap default\/c is in c.json already/);
  },
);
