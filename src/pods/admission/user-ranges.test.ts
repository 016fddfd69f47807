import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing, MemoryFiles } from "../../../test/support/ring.ts";
import { firstFree, UserRanges } from "./user-ranges.ts";

const own = pod("web").container("app").with({ hostUsers: false }).build();

describe("ranges of user ids", () => {
  const short = (hostId: number) => ({ hostId, length: 65_536 });
  const cases: [string, { hostId: number; length: number }[], number, number][] = [
    ["the first one leaves the host its own", [], 65_536, 65_536],
    ["the next that is free", [short(65_536), short(131_072)], 65_536, 196_608],
    ["a gap is used again", [short(131_072)], 65_536, 65_536],
    ["longer ranges begin at their multiples", [], 131_072, 131_072],
    ["a shorter range of before is kept clear of", [short(131_072)], 131_072, 262_144],
    ["and a longer one", [{ hostId: 65_536, length: 131_072 }], 65_536, 196_608],
  ];
  for (const [name, taken, length, want] of cases) {
    test(name, () => assert.equal(firstFree(taken, length), want));
  }

  test("only those of the pool are given away", () => {
    const pool = { first: 65_536 * 8, length: 65_536 * 2 };
    assert.equal(firstFree([], 65_536, pool), 65_536 * 8);
    assert.equal(firstFree([short(65_536 * 8)], 65_536, pool), 65_536 * 9);
    assert.throws(
      () => firstFree([short(65_536 * 8), short(65_536 * 9)], 65_536, pool),
      /no range of user ids is left/,
    );
  });

  test("none is left at the end of all ids", () => {
    assert.throws(() => firstFree([{ hostId: 2 ** 31, length: 2 ** 31 }], 2 ** 31), /no range of user ids is left/);
  });

  test("a pod keeps its range over a restart of the agent, and gives it back at its end", async () => {
    const files = new MemoryFiles();
    const options = { rootDir: "/root", idsPerPod: () => 65_536 };
    const make = (): UserRanges => new UserRanges(files, options);
    const first = make();
    const [a, b] = [await first.of("a"), await first.of("b")];
    assert.notEqual(a.hostId, b.hostId);
    const second = make();
    assert.deepEqual(await second.of("b"), b);
    assert.notEqual((await second.of("c")).hostId, a.hostId);
    await second.release("a");
    assert.equal((await second.of("d")).hostId, a.hostId);
    assert.deepEqual(await make().of("d"), a, "and the next agent does not find it with both");
  });
});

describe("ranges of user ids on a broken disk", () => {
  const options = { rootDir: "/root", idsPerPod: () => 65_536 };
  const EIO = new Error("EIO: i/o error");

  /** Files of which some cannot be read. */
  class BrokenFiles extends MemoryFiles {
    readonly broken = new Set<string>();
    override readTail(path: string, bytes: number): Promise<string> {
      return this.broken.has(path) ? Promise.reject(EIO) : super.readTail(path, bytes);
    }
  }

  test("one that cannot be persisted is not handed out, and is free again", async () => {
    const files = new MemoryFiles();
    const ranges = new UserRanges(files, options);
    const replaceFile = files.replaceFile.bind(files);
    files.replaceFile = () => Promise.reject(new Error("no space left on device"));
    await assert.rejects(ranges.of("a"), /no space left/);
    await assert.rejects(ranges.of("a"), /no space left/);
    files.replaceFile = replaceFile;
    const b = await ranges.of("b");
    assert.equal(b.hostId, 65_536);
    const a = await ranges.of("a");
    const next = new UserRanges(files, options);
    assert.deepEqual([await next.of("b"), await next.of("a")], [b, a]);
    assert.notEqual((await next.of("c")).hostId, a.hostId);
  });

  test("one whose record cannot be removed is nobody else's", async () => {
    const files = new MemoryFiles();
    const ranges = new UserRanges(files, options);
    const a = await ranges.of("a");
    const removeFile = files.removeFile.bind(files);
    files.removeFile = () => Promise.reject(EIO);
    await assert.rejects(ranges.release("a"), EIO);
    assert.notEqual((await ranges.of("b")).hostId, a.hostId);
    files.removeFile = removeFile;
    await ranges.release("a");
    assert.equal((await ranges.of("c")).hostId, a.hostId);
  });

  test("one of an earlier agent is given back, also if nothing was allocated since the start", async () => {
    const files = new MemoryFiles();
    await new UserRanges(files, options).of("a");
    await new UserRanges(files, options).release("a");
    assert.equal(files.entries.size, 0);
  });

  test("one whose write failed after all stays the pod's", async () => {
    const files = new MemoryFiles();
    const ranges = new UserRanges(files, options);
    const replaceFile = files.replaceFile.bind(files);
    files.replaceFile = (path, text) => replaceFile(path, text).then(() => Promise.reject(EIO));
    await assert.rejects(ranges.of("a"), EIO);
    files.replaceFile = replaceFile;
    assert.equal((await ranges.of("b")).hostId, 131_072);
    assert.equal((await ranges.of("a")).hostId, 65_536);
  });

  test("callers of one pod get the same range, or the same error", async () => {
    const files = new MemoryFiles();
    const ranges = new UserRanges(files, options);
    assert.deepEqual(...((await Promise.all([ranges.of("a"), ranges.of("a")])) as [unknown, unknown]));
    files.replaceFile = () => Promise.reject(EIO);
    const both = await Promise.allSettled([ranges.of("b"), ranges.of("b")]);
    assert.deepEqual(
      both.map(({ status }) => status),
      ["rejected", "rejected"],
    );
  });

  test("an unreadable record keeps new ranges back, but not those of others, nor the removal of pods", async () => {
    const files = new BrokenFiles();
    const first = new UserRanges(files, options);
    const [a, b] = [await first.of("a"), await first.of("b")];
    files.broken.add("/root/pods/a/userns");
    const ranges = new UserRanges(files, options);
    await assert.rejects(ranges.of("c"), /^Error: allocate user namespace: record of pod a is unreadable: EIO/);
    assert.deepEqual(await ranges.of("b"), b);
    files.removeFile = () => Promise.reject(EIO);
    await ranges.release("plain");
    await new UserRanges(files, options).release("plain");
    files.broken.clear();
    assert.notEqual((await ranges.of("c")).hostId, a.hostId);
    assert.deepEqual(await ranges.of("a"), a);
  });

  test("an unreadable record is no more once its pod is removed", async () => {
    const files = new BrokenFiles();
    files.entries.set("/root/pods/a/userns", "x");
    files.broken.add("/root/pods/a/userns");
    const ranges = new UserRanges(files, options);
    await assert.rejects(ranges.of("b"), /unreadable/);
    await ranges.release("a");
    assert.equal((await ranges.of("b")).hostId, 65_536);
  });

  test("a list of pods that failed is tried again", async () => {
    const files = new MemoryFiles();
    const list = files.list.bind(files);
    files.list = () => Promise.reject(EIO);
    const ranges = new UserRanges(files, options);
    await assert.rejects(ranges.of("a"), EIO);
    await ranges.release("plain");
    files.list = list;
    assert.equal((await ranges.of("a")).hostId, 65_536);
  });

  for (const text of [
    `{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}`,
    `{"uidMappings":[{"hostId":65536,"containerId":0,"length":65`,
    `junk {"hostId":65536,"containerId":0,"length":65536} junk`,
  ]) {
    test(`the record ${text} is unreadable`, async () => {
      const files = new MemoryFiles();
      files.entries.set("/root/pods/a/userns", text);
      await assert.rejects(new UserRanges(files, options).of("a"), /record of pod a is unreadable: it is malformed/);
    });
  }
});

describe("a pod with a user namespace", () => {
  test("has it in its sandbox, its containers and their mounts", async () => {
    const ring = new FakeRing();
    ring.runtime.hasUserNamespaces = true;
    await ring.want(own);
    assert.equal(ring.status()?.phase, "Running");
    const users = { hostId: 65_536, containerId: 0, length: 65_536 };
    const [container] = ring.runtime.peek().containers;
    const made = ring.runtime.configOf(container?.id ?? "");
    assert.deepEqual(made?.linux.security.namespaces.users, users);
    assert.ok((made?.mounts.length ?? 0) > 0);
    assert.ok(made?.mounts.every((mount) => mount.users?.hostId === users.hostId));
    const [sandbox] = ring.runtime.peek().sandboxes;
    assert.deepEqual(ring.runtime.sandboxConfigOf(sandbox?.id ?? "")?.linux.security.namespaces.users, users);
  });

  test("waits with the reason where the runtime has none", async () => {
    const ring = new FakeRing();
    await ring.want(own);
    assert.equal(ring.status()?.phase, "Pending");
    const event = ring.journal.events(0).find(({ reason }) => reason === "FailedCreatePodSandBox");
    assert.match(event?.message ?? "", /can't set `spec.hostUsers: false`, runtime does not support user namespaces$/);
  });

  test("gives its range back when it has completed, also while its object is there", async () => {
    const ring = new FakeRing({ app: { exitAfterMs: 100, exitCode: 0 } });
    ring.runtime.hasUserNamespaces = true;
    const job = { ...own, spec: { ...own.spec, restartPolicy: "Never" } };
    await ring.want(job);
    assert.equal(ring.files.entries.has("/root/pods/uid-of-web/userns"), true);
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.phase, "Succeeded");
    assert.equal(ring.files.entries.has("/root/pods/uid-of-web/userns"), false);
    const next = { ...own, metadata: { ...own.metadata, name: "next", uid: "uid-of-next" } };
    await ring.want(job, next);
    const made = ring.runtime.peek().containers.map(({ id }) => ring.runtime.configOf(id));
    assert.equal(made.at(-1)?.linux.security.namespaces.users?.hostId, 65_536);
  });
});
