import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeAllocator } from "../../../test/support/allocator.ts";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing, MemoryFiles } from "../../../test/support/ring.ts";
import { silent } from "../../lib/log.ts";
import type { Pod } from "../../model/generated/types.ts";
import { type Allocator, PodAllocations } from "./allocations.ts";

const FILE = "/root/pods/uid-of-web/allocations.json";
const web = pod("web").container("app").build();
const other = pod("other").container("app").build();

/** A ring whose agents share the devices of one machine, each with an allocator of its own. */
async function machine(devices: readonly string[]): Promise<{ ring: FakeRing; allocator: () => FakeAllocator }> {
  const ring = new FakeRing({ app: { termMs: 1000 } });
  let current = new FakeAllocator(devices);
  ring.allocators = () => {
    current = new FakeAllocator(devices);
    return [current];
  };
  await ring.restartAgent();
  return { ring, allocator: () => current };
}

describe("an allocation", () => {
  test("is made once, at admission, and persisted before the pod is admitted", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    let written: string | undefined;
    ring.prepareVolumes = () => Promise.resolve(void (written = ring.files.entries.get(FILE)));
    await ring.want({ ...web, spec: { ...web.spec, volumes: [{ name: "data", emptyDir: {} }] } });
    assert.equal(written, `{"version":1,"allocations":{"cards":"card-0"}}\n`);
    assert.equal(ring.status()?.phase, "Running");
    assert.deepEqual(allocator().asked, ["web"]);
  });

  test("of nothing admits the pod, and leaves no record", async () => {
    const ring = new FakeRing({ app: { termMs: 1000 } });
    const cards = new FakeAllocator(["card-0"]);
    ring.allocators = () => [
      { name: "none", allocate: () => Promise.resolve(undefined), release: () => undefined, restore: () => undefined },
    ];
    await ring.restartAgent();
    await ring.want(web);
    assert.equal(ring.status()?.phase, "Running");
    assert.equal(ring.files.entries.has(FILE), false);
    // One of two allocators has something for the pod.
    const none = ring.allocators();
    ring.allocators = () => [...none, cards];
    await ring.restartAgent();
    await ring.want(web, other);
    assert.equal(ring.status("other")?.phase, "Running");
    assert.deepEqual([...cards.given], [["uid-of-other", "card-0"]]);
  });

  test("that is rejected is the pod's rejection, and nothing of it stays allocated", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    await ring.want(web, other);
    const { phase, reason, message } = ring.status("other") ?? {};
    assert.deepEqual([phase, reason, message], ["Failed", "NoCard", "Pod was rejected: no card is free"]);
    assert.equal(ring.pool.worker("uid-of-other"), undefined);
    assert.deepEqual([...allocator().given], [["uid-of-web", "card-0"]]);
  });

  test("that fails is the rejection of a pod that also asks for more than the node has", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    const huge = (name: string) =>
      pod(name)
        .container("app", { resources: { requests: { cpu: "1000" } } })
        .build();
    await ring.want(huge("one"));
    assert.equal(ring.status("one")?.reason, "OutOfcpu");
    Object.assign(allocator(), { problem: () => ({ reason: "NoCard", message: "no card is free" }) });
    await ring.want(huge("two"));
    assert.equal(ring.status("two")?.reason, "NoCard");
    assert.deepEqual(allocator().asked, []);
  });

  test("whose allocator fails is UnexpectedAdmissionError, as in Kubernetes", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    allocator().fault = new Error("plugin is gone");
    await ring.want(web);
    const { reason, message } = ring.status() ?? {};
    assert.equal(reason, "UnexpectedAdmissionError");
    assert.equal(message, "Pod was rejected: Allocate failed due to plugin is gone, which is unexpected");
  });

  test("that cannot be persisted is taken back, and the pod is rejected", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    ring.files.replaceFile = () => Promise.reject(new Error("no space left on device"));
    await ring.want(web);
    assert.equal(ring.status()?.reason, "UnexpectedAdmissionError");
    assert.deepEqual([...allocator().given], []);
  });

  test("that is aborted because the agent stops neither admits nor rejects the pod; the next agent makes it", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    allocator().takesMs = 500;
    allocator().clock = ring.clock;
    await ring.want(web);
    const { pool, journal } = ring;
    await ring.restartAgent();
    await ring.clock.advance(1000);
    assert.equal(pool.status("uid-of-web"), undefined);
    assert.deepEqual(journal.events(0), []);
    assert.equal(ring.files.entries.has(FILE), false);
    await ring.want(web);
    assert.equal(ring.status()?.phase, "Running");
    assert.deepEqual([...allocator().given], [["uid-of-web", "card-0"]]);
  });

  test("is released when the pod is removed, and the next pod gets it", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    await ring.want(web);
    await ring.want();
    assert.deepEqual([...allocator().given.keys()], ["uid-of-web"], "not while it still runs");
    await ring.clock.advance(1000);
    assert.deepEqual([...allocator().given], []);
    assert.equal(ring.files.entries.has(FILE), false);
    await ring.want(other);
    assert.equal(ring.status("other")?.phase, "Running");
  });

  test("is released when the pod has completed, also while its object is there", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    ring.runtime.program("job", { exitAfterMs: 100 });
    const job = pod("web").container("job").restart("Never").build();
    await ring.want(job);
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.phase, "Succeeded");
    assert.deepEqual([...allocator().given], []);
    assert.equal(ring.files.entries.has(FILE), false);
  });

  test("is released when the pod was killed, also while its volumes cannot be unmounted", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    ring.runtime.program("job", { exitAfterMs: 100 });
    ring.tearDownVolumes = () => new Promise<void>(() => undefined);
    await ring.want(pod("web").container("job").restart("Never").build());
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.phase, "Succeeded");
    assert.deepEqual([...allocator().given], []);
    assert.equal(ring.files.entries.has(FILE), false);
  });

  test("of a pod that the API server calls Failed is kept until all of its containers have ended", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    ring.runtime.program("side", { termMs: 5000 });
    const both = pod("web").container("app").container("side").build();
    ring.source = "api";
    await ring.restartAgent();
    await ring.want(both);
    await ring.restartAgent();
    // As of a node that was lost for a while: its pods are failed by others.
    await ring.want({ ...both, status: { phase: "Failed", startTime: "2026-01-01T00:00:00Z" } });
    await ring.clock.advance(4999);
    assert.deepEqual([...allocator().given.keys()], ["uid-of-web"]);
    await ring.clock.advance(1);
    assert.deepEqual([...allocator().given.keys()], []);
  });

  test("is restored after a restart of the agent, and nobody else gets it", async () => {
    const { ring, allocator } = await machine(["card-0", "card-1"]);
    await ring.want(web);
    await ring.restartAgent();
    await ring.want(other, web);
    assert.deepEqual(allocator().asked, ["other"], "the pod that runs is not asked again");
    assert.deepEqual(Object.fromEntries(allocator().given), { "uid-of-web": "card-0", "uid-of-other": "card-1" });
  });

  test("of a pod that was killed between allocation and start is kept", async () => {
    const { ring, allocator } = await machine(["card-0", "card-1"]);
    await ring.want(web);
    const text = ring.files.entries.get(FILE) ?? "";
    await ring.want();
    await ring.clock.advance(1000);
    ring.files.entries.set(FILE, text.replace("card-0", "card-1"));
    await ring.restartAgent();
    await ring.want(web);
    assert.deepEqual([...allocator().given], [["uid-of-web", "card-1"]]);
    assert.deepEqual(allocator().asked, []);
  });

  test("of a pod that was removed while no agent ran is released", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    await ring.want(web);
    const text = ring.files.entries.get(FILE) ?? "";
    await ring.want();
    await ring.clock.advance(1000);
    ring.files.entries.set(FILE, text);
    await ring.restartAgent();
    await ring.want();
    assert.deepEqual([...allocator().given], []);
    assert.equal(ring.files.entries.has(FILE), false);
  });

  for (const { first, isListed } of [
    { first: "the runtime is listed", isListed: true },
    { first: "the pods are known", isListed: false },
  ]) {
    test(`of a pod that was removed while no agent ran is kept until it has stopped, if at first ${first}`, async () => {
      const { ring, allocator } = await machine(["card-0"]);
      await ring.want(web);
      ring.stopAgent();
      await ring.restartAgent({ isListed });
      ring.publish();
      await ring.clock.advance(999);
      assert.deepEqual([...allocator().given.keys()], ["uid-of-web"]);
      await ring.clock.advance(1);
      assert.deepEqual([...allocator().given.keys()], []);
    });

    test(`of a pod that nobody has any more is released, if at first ${first}`, async () => {
      const { ring, allocator } = await machine(["card-0"]);
      ring.files.entries.set(FILE, `{"version":1,"allocations":{"cards":"card-0"}}\n`);
      await ring.restartAgent({ isListed });
      ring.publish();
      await ring.clock.advance(0);
      assert.deepEqual([[...allocator().given.keys()], ring.files.entries.has(FILE)], [[], false]);
    });
  }

  test("of a pod that nobody has any more is released once the disk can be read", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    ring.files.entries.set(FILE, `{"version":1,"allocations":{"cards":"card-0"}}\n`);
    const list = ring.files.list.bind(ring.files);
    ring.files.list = () => Promise.reject(new Error("EIO: i/o error"));
    await ring.restartAgent();
    await ring.want();
    ring.files.list = list;
    // The audit.
    await ring.clock.advance(300_000);
    assert.deepEqual([[...allocator().given.keys()], ring.files.entries.has(FILE)], [[], false]);
  });

  test("of a pod whose manifest cannot be read yet is kept", async () => {
    const { ring, allocator } = await machine(["card-0", "card-1"]);
    await ring.want(web);
    const text = ring.files.entries.get(FILE) ?? "";
    await ring.want();
    await ring.clock.advance(1000);
    ring.files.entries.set(FILE, text.replace("card-0", "card-1"));
    await ring.restartAgent();
    await ring.clock.advance(0);
    // As of a machine that has rebooted: the runtime has nothing of the pod.
    ring.publish({ isIncomplete: true });
    await ring.clock.advance(0);
    assert.deepEqual([...allocator().given], [["uid-of-web", "card-1"]]);
    await ring.want(web);
    assert.deepEqual([...allocator().given], [["uid-of-web", "card-1"]]);
    assert.deepEqual(allocator().asked, []);
  });

  test("that an allocator records itself is released if its pod was removed while no agent ran", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    await ring.want(web);
    allocator().given.set("gone", "card-1");
    allocator().held = () => [...allocator().given.keys()];
    const restart = ring.allocators;
    const before = allocator();
    ring.allocators = () => {
      restart?.();
      for (const [uid, card] of before.given) allocator().given.set(uid, card);
      allocator().held = () => [...allocator().given.keys()];
      return [allocator()];
    };
    await ring.restartAgent();
    await ring.want(web);
    assert.deepEqual([...allocator().given], [["uid-of-web", "card-0"]]);
  });

  for (const [what, { running, rejected }] of Object.entries({
    "that was killed": { running: true, rejected: false },
    "that was rejected": { running: false, rejected: true },
  })) {
    test(`that an allocator can only read later is released of a pod ${what}, also while its object is there`, async () => {
      const { ring, allocator } = await machine(["card-0"]);
      const job: Pod = { ...web, spec: { ...web.spec, activeDeadlineSeconds: 60 } };
      await ring.want(job);
      ring.stopAgent();
      if (!running) {
        const { signal } = new AbortController();
        for (const { id } of await ring.runtime.listSandboxes({}, { signal })) {
          await ring.runtime.stopSandbox(id, { signal });
          await ring.runtime.removeSandbox(id, { signal });
        }
      }
      ring.files.entries.delete(FILE);
      if (rejected) ring.node = { ...ring.node, allocatable: { ...ring.node.allocatable, pods: "0" } };
      await ring.restartAgent({ isListed: false });
      let isReadable = false;
      allocator().held = () => {
        if (!isReadable) throw new Error("EIO: i/o error");
        return [...allocator().given.keys()];
      };
      await ring.want(job);
      await ring.clock.advance(120_000);
      assert.equal(ring.status()?.phase, "Failed");
      // As `restore` of an allocator that keeps records of its own.
      isReadable = true;
      allocator().given.set("uid-of-web", "card-0");
      ring.publish(job);
      await ring.clock.advance(1000);
      assert.deepEqual([...allocator().given], []);
    });
  }

  test("of a pod that comes back under its UID is made anew", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    await ring.want(web);
    // The audit lists the pod while it runs.
    await ring.clock.advance(300_000);
    await ring.want();
    await ring.clock.advance(500);
    await ring.want(web);
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.phase, "Running");
    assert.deepEqual(allocator().asked, ["web", "web"]);
    assert.deepEqual([...allocator().given], [["uid-of-web", "card-0"]]);
    assert.ok(ring.files.entries.has(FILE));
  });

  test("is made in the order of creation, also if the first pod waits for the disk", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    const at = (of: Pod, creationTimestamp: string): Pod => ({
      ...of,
      metadata: { ...of.metadata, creationTimestamp },
    });
    const removeFile = ring.files.removeFile.bind(ring.files);
    ring.files.removeFile = async (path) => {
      if (path === FILE) await ring.clock.sleep(5000);
      await removeFile(path);
    };
    await ring.want(web);
    await ring.want();
    await ring.clock.advance(1000);
    await ring.want(at(other, "2026-01-01T00:00:02Z"), at(web, "2026-01-01T00:00:01Z"));
    await ring.clock.advance(5000);
    assert.deepEqual([...allocator().given.keys()], ["uid-of-web"]);
    assert.equal(ring.status("other")?.reason, "NoCard");
  });

  test("of a pod that is no longer wanted once it is made is released", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    await ring.clock.advance(0);
    allocator().takesMs = 500;
    allocator().clock = ring.clock;
    await ring.want(web);
    await ring.want();
    await ring.clock.advance(1000);
    assert.deepEqual([...allocator().given], []);
    assert.equal(ring.files.entries.has(FILE), false);
    assert.deepEqual(await ring.containers(), []);
  });
});

describe("an allocation that a plugin takes long for", () => {
  async function slow(name: string): Promise<{ ring: FakeRing; allocator: () => FakeAllocator }> {
    const { ring, allocator } = await machine(["card-0", "card-1"]);
    await ring.clock.advance(0);
    Object.assign(allocator(), { clock: ring.clock, takesMs: 60_000, slow: name });
    return { ring, allocator };
  }
  const needs = (name: string, cpu: string) =>
    pod(name)
      .container("app", { resources: { requests: { cpu } } })
      .build();

  test("delays no other pod", async () => {
    const { ring, allocator } = await slow("web");
    await ring.want(web, other);
    assert.equal(ring.status("other")?.phase, "Running");
    assert.equal(ring.status("web"), undefined);
    assert.deepEqual(Object.fromEntries(allocator().given), { "uid-of-web": "card-0", "uid-of-other": "card-1" });
    await ring.clock.advance(60_000);
    assert.equal(ring.status("web")?.phase, "Running");
  });

  test("counts: what has no room beside it waits until it is decided", async () => {
    const { ring, allocator } = await slow("one");
    await ring.want(needs("one", "1500m"), needs("two", "1"));
    assert.equal(ring.status("two"), undefined);
    allocator().fault = new Error("plugin is gone");
    await ring.clock.advance(60_000);
    assert.equal(ring.status("one")?.reason, "UnexpectedAdmissionError");
    assert.equal(ring.status("two")?.phase, "Running");
  });

  test("rejects what has no room beside it once it is admitted", async () => {
    const { ring } = await slow("one");
    await ring.want(needs("one", "1500m"), needs("two", "1"));
    await ring.clock.advance(60_000);
    assert.equal(ring.status("one")?.phase, "Running");
    assert.equal(ring.status("two")?.reason, "OutOfcpu");
  });

  test("is made anew for a pod that came back under its UID, also if the plugin went on for the former one", async () => {
    const { ring, allocator } = await slow("web");
    allocator().ignoresAbort = true;
    await ring.want(web);
    await ring.want();
    await ring.want(web);
    await ring.clock.advance(60_000);
    assert.equal(ring.status("web"), undefined);
    await ring.clock.advance(60_000);
    assert.equal(ring.status("web")?.phase, "Running");
    assert.deepEqual(allocator().asked, ["web", "web"]);
    assert.deepEqual([...allocator().given], [["uid-of-web", "card-0"]]);
  });

  test("ends with its pod: another gets the card at once, also the same pod that comes back", async () => {
    const { ring, allocator } = await slow("web");
    await ring.want(web);
    await ring.want();
    assert.deepEqual([...allocator().given], []);
    await ring.want(web);
    await ring.want();
    allocator().slow = "nobody";
    await ring.want(web);
    assert.equal(ring.status("web")?.phase, "Running");
    assert.deepEqual([...allocator().given], [["uid-of-web", "card-0"]]);
  });
});

describe("allocations on a broken disk", () => {
  const EIO = new Error("EIO: i/o error");

  /** The record of `web` cannot be read until `mend`. */
  async function unreadable(ring: FakeRing): Promise<() => void> {
    const readTail = ring.files.readTail.bind(ring.files);
    ring.files.readTail = (path, bytes) => (path === FILE ? Promise.reject(EIO) : readTail(path, bytes));
    await ring.restartAgent();
    return () => {
      ring.files.readTail = readTail;
    };
  }

  test("a list of pods that failed is tried again, and the agent goes on", async () => {
    const { ring, allocator } = await machine(["card-0", "card-1"]);
    await ring.want(web);
    const list = ring.files.list.bind(ring.files);
    let tries = 0;
    ring.files.list = (path) => {
      if (path !== "/root/pods") return list(path);
      tries++;
      return Promise.reject(EIO);
    };
    await ring.restartAgent();
    await ring.want(web, other);
    assert.equal(ring.pool.worker("uid-of-other"), undefined);
    await ring.clock.advance(3500);
    assert.ok(tries >= 3, `${tries}`);
    ring.files.list = list;
    await ring.clock.advance(30_000);
    assert.equal(ring.status("other")?.phase, "Running");
    assert.deepEqual(Object.fromEntries(allocator().given), { "uid-of-web": "card-0", "uid-of-other": "card-1" });
  });

  test("while the record of a running pod is unreadable, nothing is allocated", async () => {
    const { ring, allocator } = await machine(["card-0", "card-1"]);
    await ring.want(web);
    const mend = await unreadable(ring);
    await ring.want(web, other);
    const { reason, message } = ring.status("other") ?? {};
    assert.equal(reason, "UnexpectedAdmissionError");
    assert.match(message ?? "", /record of the allocations of pod uid-of-web is unreadable: EIO: i\/o error/);
    assert.equal(ring.status()?.phase, "Running");
    assert.deepEqual(allocator().asked, []);
    mend();
    const third = pod("third").container("app").build();
    await ring.want(web, third);
    assert.deepEqual(Object.fromEntries(allocator().given), { "uid-of-web": "card-0", "uid-of-third": "card-1" });
  });

  test("an unreadable record keeps nothing back once its pod is gone", async () => {
    const { ring, allocator } = await machine(["card-0"]);
    await ring.want(web);
    await unreadable(ring);
    await ring.want(web);
    await ring.want();
    await ring.clock.advance(1000);
    assert.equal(ring.files.entries.has(FILE), false);
    await ring.want(other);
    assert.deepEqual(Object.fromEntries(allocator().given), { "uid-of-other": "card-0" });
  });

  for (const text of [
    `{"version":1,"alloc`,
    "null",
    "7",
    '{"version":1}',
    '{"version":1,"allocations":null}',
    '{"version":1,"allocations":7}',
  ]) {
    test(`the malformed record ${text} is unreadable, too`, async () => {
      const { ring, allocator } = await machine(["card-0", "card-1"]);
      await ring.want(web);
      ring.files.entries.set(FILE, text);
      await ring.restartAgent();
      await ring.want(web, other);
      assert.equal(ring.status("other")?.reason, "UnexpectedAdmissionError");
      assert.deepEqual(allocator().asked, []);
    });
  }
});

describe("records of allocations", () => {
  const { signal } = new AbortController();
  const RECORD = `{"version":1,"allocations":{"cards":"card-0"}}\n`;

  /** Records of an agent with these allocators, on files that outlive it. */
  function agent(files: MemoryFiles, ...allocators: readonly Allocator[]) {
    const warnings: string[] = [];
    const log = { ...silent, warn: (message: string) => void warnings.push(message) };
    return { allocations: new PodAllocations({ allocators, files, log }, { rootDir: "/root" }), warnings };
  }

  async function allocate(allocations: PodAllocations, of = web): Promise<unknown> {
    return await (await allocations.begin(of, { signal })).outcome;
  }

  test("are removed before the same pod is allocated something again", async () => {
    const files = new MemoryFiles();
    const cards = new FakeAllocator(["card-0"]);
    const { allocations } = agent(files, cards);
    await allocate(allocations);
    const removeFile = files.removeFile.bind(files);
    let remove = (): void => undefined;
    files.removeFile = async (path) => {
      await new Promise<void>((resolve) => (remove = resolve));
      await removeFile(path);
    };
    const released = allocations.release("uid-of-web");
    const again = allocate(allocations);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(cards.asked, ["web"], "it waits for the disk");
    remove();
    assert.equal(await again, undefined);
    await released;
    assert.equal(files.entries.get(FILE), RECORD);
  });

  test("go each time that a pod of the same UID ends", async () => {
    const files = new MemoryFiles();
    const cards = new FakeAllocator(["card-0"]);
    const { allocations } = agent(files, cards);
    for (let life = 0; life < 2; life++) {
      assert.equal(await allocate(allocations), undefined);
      await allocations.release("uid-of-web");
      assert.deepEqual([[...cards.given], files.entries.has(FILE)], [[], false]);
    }
  });

  test("of pods that are gone are released also if nobody has restored them before", async () => {
    const files = new MemoryFiles();
    await allocate(agent(files, new FakeAllocator(["card-0"])).allocations);
    const cards = new FakeAllocator(["card-0"]);
    await agent(files, cards).allocations.releaseOthers(() => false);
    assert.deepEqual([[...cards.given], files.entries.has(FILE)], [[], false]);
  });

  test("are handed to each allocator by its name, and to no other", async () => {
    const files = new MemoryFiles();
    await allocate(agent(files, new FakeAllocator(["card-0"])).allocations);
    const restored: [string, unknown][] = [];
    const named = (name: string): Allocator => ({
      name,
      allocate: () => Promise.resolve(undefined),
      release: () => undefined,
      restore: (records) =>
        restored.push(...[...records].map(([uid, of]): [string, unknown] => [`${name} ${uid}`, of])),
    });
    await agent(files, named("cards"), named("others")).allocations.restore();
    assert.deepEqual(restored, [["cards uid-of-web", "card-0"]]);
  });

  test("that are gone when they could be read keep nothing back", async () => {
    const files = new MemoryFiles();
    files.entries.set(FILE, "{");
    const { allocations, warnings } = agent(files, new FakeAllocator(["card-0"]));
    await allocations.restore();
    assert.equal((await allocate(allocations, other)) === undefined, false);
    assert.equal(warnings.length, 1, "what is known is not told again");
    files.entries.delete(FILE);
    assert.equal(await allocate(allocations, other), undefined);
  });

  for (const read of ["succeeds", "fails"]) {
    test(`that are read again while their pod is released are nobody's: the read ${read}`, async () => {
      const files = new MemoryFiles();
      files.entries.set(FILE, "{");
      const cards = new FakeAllocator(["card-0", "card-1"]);
      const { allocations } = agent(files, cards);
      await allocations.restore();
      let answer = (): void => undefined;
      files.readTail = () =>
        new Promise((resolve, reject) => {
          answer = () => (read === "fails" ? reject(new Error("EIO: i/o error")) : resolve(RECORD));
        });
      const admitted = allocate(allocations, other);
      await new Promise((resolve) => setImmediate(resolve));
      await allocations.release("uid-of-web");
      answer();
      assert.equal(await admitted, undefined);
      assert.equal(await allocate(allocations), undefined);
      assert.deepEqual(cards.asked, ["other", "web"]);
    });
  }

  test("of several allocators: the first reason counts, and a rejection comes before a wait", async () => {
    const rejection = { reason: "NoCard", message: "no card is free" };
    const quiet: Allocator = {
      name: "quiet",
      allocate: () => Promise.resolve(undefined),
      problem: () => undefined,
      readmit: () => undefined,
      adopt: () => Promise.resolve(undefined),
      release: () => undefined,
      restore: () => undefined,
    };
    const waits = { ...quiet, readmit: () => ({ waits: "for a plugin" }) };
    const answer = { rejection };
    const refuses = {
      ...quiet,
      problem: () => rejection,
      readmit: () => answer,
      adopt: () => Promise.resolve(rejection),
    };
    const { allocations } = agent(new MemoryFiles(), quiet, waits, refuses);
    assert.deepEqual(allocations.problem(web), rejection);
    assert.deepEqual(allocations.readmit(web), { rejection });
    assert.deepEqual(await allocations.adopt(web, { signal }), rejection);
    assert.deepEqual(agent(new MemoryFiles(), quiet, waits).allocations.readmit(web), { waits: "for a plugin" });
  });
});
