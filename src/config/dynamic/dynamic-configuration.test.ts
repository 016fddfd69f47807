import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortedError } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import type { ConfigDocument } from "../document.ts";
import type { ConfigEvent } from "../live-configuration.ts";
import { MOST_STARTS } from "./chooser.ts";
import { DynamicConfiguration, UNHEALTHY_MS } from "./dynamic-configuration.ts";
import { DynamicStore } from "./store.ts";

const never = new AbortController();
const { signal } = never;
const TRIAL_MS = 600_000;
const META = "/d/store/meta";

/** Thrown at a point where the process is killed: nothing after it runs. */
class Killed extends Error {}

/** A disk in memory that outlives agents, and kills or fails at the writes a test names. */
class Disk {
  readonly content = new Map<string, string>();
  writes = 0;
  /** Dies before (`0.0`) or after (`0.5`) this write. */
  killAt = Number.POSITIVE_INFINITY;
  isFull = false;

  readonly files = {
    read: async (path: string) => this.content.get(path),
    write: async (path: string, content: string) => {
      const number = this.writes++;
      if (this.killAt < number) throw new Killed();
      if (this.killAt === number) throw new Killed();
      if (this.isFull) throw new Error("ENOSPC: no space left on device");
      this.content.set(path, content);
      if (this.killAt === number + 0.5) throw new Killed();
    },
    list: async (path: string) => {
      const below = [...this.content.keys()].filter((name) => name.startsWith(`${path}/`));
      return [...new Set(below.map((name) => name.slice(path.length + 1).split("/")[0] ?? ""))];
    },
  };
}

/** One life of an agent on the disk. A configuration is JSON; `bad` is not valid, `restart` cannot be changed live. */
function agentOn(disk: Disk, clock = new FakeClock()) {
  const parseJson = async (text: string): Promise<unknown> => JSON.parse(text);
  const site = {
    clock,
    inForce: undefined as unknown,
    trouble: undefined as string | undefined,
    isWhole: true,
    restart: [] as "rootDir"[],
    trialMs: TRIAL_MS,
    events: [] as ConfigEvent[],
  };
  const store = new DynamicStore({ files: disk.files, parse: parseJson }, "/d");
  const dynamic = new DynamicConfiguration({
    store,
    clock,
    log: silent,
    event: (event) => site.events.push(event),
    parse: async (text, file) => ({ file, directory: "/", value: await parseJson(text), line: 1, warnings: [] }),
    judge: ({ value }) => (Object.keys(value as object).includes("bad") ? ["bad: is not valid"] : []),
    use: async (document: ConfigDocument | undefined) => {
      site.inForce = document?.value;
      return { applied: [], restart: site.restart, reload: [], problems: [], warnings: [] };
    },
    isWhole: () => site.isWhole,
    health: async () => site.trouble,
    trialMs: () => site.trialMs,
  });
  return Object.assign(site, { dynamic, store });
}

const apply = (agent: ReturnType<typeof agentOn>, value: object) =>
  agent.dynamic.apply(JSON.stringify(value), "/new.json", { signal });
const started = async (agent: ReturnType<typeof agentOn>): Promise<unknown> =>
  (await agent.dynamic.start({ signal }))?.value;

/** A disk on which `{"v":1}` is the last known good one, and assigned. */
async function diskWithGood(): Promise<Disk> {
  const disk = new Disk();
  const agent = agentOn(disk);
  await started(agent);
  const stop = new AbortController();
  const run = agent.dynamic.run(stop.signal);
  await apply(agent, { v: 1 });
  await agent.clock.advance(TRIAL_MS + 10_000);
  assert.equal(agent.dynamic.report().state, "good");
  stop.abort(new AbortedError());
  await run;
  return disk;
}

test("without anything stored the local configuration is in force", async () => {
  const agent = agentOn(new Disk());
  assert.equal(await started(agent), undefined);
  assert.equal(agent.dynamic.report().state, "local");
});

test("applied, it is on trial, and after the trial time the last known good one", async () => {
  const disk = new Disk();
  const agent = agentOn(disk);
  await started(agent);
  const stop = new AbortController();
  const run = agent.dynamic.run(stop.signal);
  await apply(agent, { v: 1 });
  assert.deepEqual(agent.inForce, { v: 1 });
  await agent.clock.advance(TRIAL_MS - 1);
  assert.equal(agent.dynamic.report().state, "trial");
  assert.equal(disk.content.get(`${META}/last-known-good`), undefined);
  await agent.clock.advance(6000);
  const { state, lastKnownGood, active } = agent.dynamic.report();
  assert.deepEqual([state, lastKnownGood], ["good", active]);
  assert.deepEqual(
    agent.events.map(({ reason }) => reason),
    ["ConfigGood"],
  );
  stop.abort(new AbortedError());
  await run;
  assert.equal(agent.clock.waiting, 0);
  assert.deepEqual(await started(agentOn(disk)), { v: 1 });
});

test("one that waits for a restart is not good before it was wholly in force", async () => {
  const agent = agentOn(new Disk());
  await started(agent);
  const stop = new AbortController();
  const run = agent.dynamic.run(stop.signal);
  agent.isWhole = false;
  await apply(agent, { v: 1 });
  await agent.clock.advance(3 * TRIAL_MS);
  assert.equal(agent.dynamic.report().state, "trial");
  agent.isWhole = true;
  await agent.clock.advance(6000);
  assert.equal(agent.dynamic.report().state, "good");
  stop.abort(new AbortedError());
  await run;
});

test("one that does not load or is not valid is refused, and nothing changes", async () => {
  const disk = await diskWithGood();
  const before = new Map(disk.content);
  const agent = agentOn(disk);
  await started(agent);
  await assert.rejects(apply(agent, { bad: 1 }), /bad: is not valid/);
  await assert.rejects(agent.dynamic.apply("{", "/new.json", { signal }), { code: "Invalid" });
  assert.deepEqual(disk.content, before);
});

test("a full disk: the change is refused, and what is in force and stored stays", async () => {
  const disk = await diskWithGood();
  const agent = agentOn(disk);
  await started(agent);
  disk.isFull = true;
  await assert.rejects(apply(agent, { v: 2 }), { code: "NotStored", message: /no space left/ });
  assert.equal(agent.inForce, undefined, "nothing was switched");
  disk.isFull = false;
  assert.deepEqual(await started(agentOn(disk)), { v: 1 });
});

test("a start that cannot be written down is not made under a configuration on trial", async () => {
  const disk = await diskWithGood();
  const agent = agentOn(disk);
  await started(agent);
  await apply(agent, { v: 2 });
  disk.isFull = true;
  const next = agentOn(disk);
  assert.deepEqual(await started(next), { v: 1 });
  assert.match(next.dynamic.report().error ?? "", /could not be written/);
});

test("crashes: tried again, then rolled back for good; another configuration has its own trial", async () => {
  const disk = await diskWithGood();
  const first = agentOn(disk);
  await started(first);
  await apply(first, { v: 2 });
  // Each of these lives ends without a word; the one that applied it counts too.
  for (let crash = 1; crash < MOST_STARTS; crash++) assert.deepEqual(await started(agentOn(disk)), { v: 2 });
  for (let later = 0; later < 2; later++) {
    const agent = agentOn(disk);
    assert.deepEqual(await started(agent), { v: 1 });
    const { state, error, assigned, active } = agent.dynamic.report();
    assert.deepEqual([state, assigned?.resourceVersion, active?.resourceVersion], ["rolled back", "2", "1"]);
    assert.match(error ?? "", /crashed 3 times/);
    assert.equal(agent.events[0]?.reason, "ConfigRolledBack");
  }
  const agent = agentOn(disk);
  await started(agent);
  await apply(agent, { v: 3 });
  assert.deepEqual(await started(agentOn(disk)), { v: 3 });
  assert.deepEqual(
    (await agent.dynamic.history()).map(({ id, state }) => `${id} ${state}`),
    ["file/1/kubelet good", "file/2/kubelet rolled back", "file/3/kubelet trial"],
  );
});

test("ends in good order are no crashes", async () => {
  const disk = await diskWithGood();
  const first = agentOn(disk);
  await started(first);
  await apply(first, { v: 2 });
  for (let life = 0; life < 3 * MOST_STARTS; life++) {
    const agent = agentOn(disk);
    assert.deepEqual(await started(agent), { v: 2 });
    const stop = new AbortController();
    const run = agent.dynamic.run(stop.signal);
    stop.abort(new AbortedError("ended by SIGTERM"));
    await run;
  }
});

test("an agent that ended by a fault of its own has crashed", async () => {
  const disk = await diskWithGood();
  const first = agentOn(disk);
  await started(first);
  await apply(first, { v: 2 });
  for (let life = 1; life < MOST_STARTS; life++) {
    const agent = agentOn(disk);
    await started(agent);
    const stop = new AbortController();
    const run = agent.dynamic.run(stop.signal);
    stop.abort(new Error("a loop failed"));
    await run;
  }
  assert.deepEqual(await started(agentOn(disk)), { v: 1 });
});

test("an unhealthy agent goes back to the last known good one while it runs; a short trouble is none", async () => {
  const disk = await diskWithGood();
  const agent = agentOn(disk);
  await started(agent);
  const stop = new AbortController();
  const run = agent.dynamic.run(stop.signal);
  await apply(agent, { v: 2 });
  agent.trouble = "the runtime does not answer";
  await agent.clock.advance(UNHEALTHY_MS - 10_000);
  agent.trouble = undefined;
  await agent.clock.advance(10_000);
  agent.trouble = "the runtime does not answer";
  await agent.clock.advance(UNHEALTHY_MS - 10_000);
  assert.equal(agent.dynamic.report().state, "trial");
  await agent.clock.advance(30_000);
  assert.equal(agent.dynamic.report().state, "rolled back");
  assert.deepEqual(agent.inForce, { v: 1 });
  assert.match(agent.events.at(-1)?.message ?? "", /not healthy under it: the runtime does not answer/);
  stop.abort(new AbortedError());
  await run;
  assert.deepEqual(await started(agentOn(disk)), { v: 1 }, "also after a restart");
});

test("a short trial has a short patience", async () => {
  const agent = agentOn(await diskWithGood());
  agent.trialMs = 2000;
  await started(agent);
  const stop = new AbortController();
  const run = agent.dynamic.run(stop.signal);
  await apply(agent, { v: 2 });
  agent.trouble = "the runtime does not answer";
  await agent.clock.advance(9000);
  assert.equal(agent.dynamic.report().state, "trial");
  await agent.clock.advance(10_000);
  assert.equal(agent.dynamic.report().state, "rolled back");
  stop.abort(new AbortedError());
  await run;
});

test("where going back needs a restart, the agent ends", async () => {
  const disk = await diskWithGood();
  const agent = agentOn(disk);
  await started(agent);
  await apply(agent, { v: 2 });
  agent.trouble = "no";
  agent.restart = ["rootDir"];
  const run = assert.rejects(agent.dynamic.run(signal), { code: "RolledBack" });
  await agent.clock.advance(UNHEALTHY_MS + 10_000);
  await run;
});

for (const name of ["assigned", "last-known-good", "trial", "history", "checkpoint"]) {
  test(`${name} cut at every byte: never a mixture, never a crash`, async () => {
    const whole = await diskWithGood();
    const agent = agentOn(whole);
    await started(agent);
    await apply(agent, { v: 2, more: "text that is longer" });
    const path = name === "checkpoint" ? "/d/store/checkpoints/file/2/kubelet" : `${META}/${name}`;
    const content = whole.content.get(path) ?? "";
    assert.ok(content.length > 10, path);
    for (let length = 0; length < content.trimEnd().length; length++) {
      const disk = new Disk();
      for (const [file, text] of whole.content) disk.content.set(file, text);
      disk.content.set(path, content.slice(0, length));
      const next = agentOn(disk);
      const value = await started(next);
      const { error, state } = next.dynamic.report();
      if (name === "assigned" && length === 0) assert.deepEqual([value, state], [undefined, "local"]);
      else if (name === "assigned" || name === "checkpoint") {
        assert.deepEqual([value, error !== undefined], [{ v: 1 }, true], content.slice(0, length));
      } else assert.deepEqual([value, state], [{ v: 2, more: "text that is longer" }, "trial"]);
    }
  });
}

test("the last known good one is damaged too: the local configuration, and it says why", async () => {
  const disk = await diskWithGood();
  disk.content.set("/d/store/checkpoints/file/1/kubelet", "{");
  const agent = agentOn(disk);
  assert.equal(await started(agent), undefined);
  assert.match(agent.dynamic.report().error ?? "", /checksum does not match/);
});

test("killed before or after every write of an apply and its start, the next agent runs the old or the new one", async () => {
  const seen = new Set<string>();
  for (let killAt = 0; killAt < 12; killAt += 0.5) {
    const disk = await diskWithGood();
    disk.writes = 0;
    disk.killAt = killAt;
    const agent = agentOn(disk);
    await started(agent);
    const outcome = await apply(agent, { v: 2 }).then(
      () => "done",
      () => "killed",
    );
    disk.killAt = Number.POSITIVE_INFINITY;
    const next = agentOn(disk);
    const value = await started(next);
    assert.equal(next.dynamic.report().error, undefined);
    assert.ok(JSON.stringify(value) === '{"v":1}' || JSON.stringify(value) === '{"v":2}', `${killAt}`);
    if (outcome === "done") assert.deepEqual(value, { v: 2 }, "what was said to be done is done");
    seen.add(`${outcome} ${JSON.stringify(value)}`);
    await apply(next, { v: 3 });
    assert.deepEqual(await started(agentOn(disk)), { v: 3 }, "and the store still works");
  }
  assert.ok(seen.has('killed {"v":1}') && seen.has('done {"v":2}'), [...seen].join());
});

test("killed at every write of a promotion, a roll-back or a start, the next agent runs one of the two", async () => {
  for (const trouble of [undefined, "no"]) {
    for (let killAt = 0; killAt < 8; killAt += 0.5) {
      const disk = await diskWithGood();
      const agent = agentOn(disk);
      await started(agent);
      await apply(agent, { v: 2 });
      disk.writes = 0;
      disk.killAt = killAt;
      agent.trouble = trouble;
      const stop = new AbortController();
      const run = agent.dynamic.run(stop.signal);
      await agent.clock.advance(TRIAL_MS + UNHEALTHY_MS);
      stop.abort(new Killed());
      await run.catch(() => undefined);
      disk.killAt = Number.POSITIVE_INFINITY;
      const next = agentOn(disk);
      const value = JSON.stringify(await started(next));
      assert.ok(value === '{"v":1}' || value === '{"v":2}', `${trouble} ${killAt}: ${value}`);
    }
  }
});

test("rollback: to the last known good one, refused when that is in force, and to the local one", async () => {
  const disk = await diskWithGood();
  const agent = agentOn(disk);
  await started(agent);
  await apply(agent, { v: 2 });
  await agent.dynamic.rollback({ toLocal: false }, { signal });
  assert.deepEqual([agent.inForce, agent.dynamic.report().state], [{ v: 1 }, "good"]);
  assert.deepEqual(await started(agentOn(disk)), { v: 1 });
  await assert.rejects(agent.dynamic.rollback({ toLocal: false }, { signal }), /--to-local/);
  await agent.dynamic.rollback({ toLocal: true }, { signal });
  assert.equal(await started(agentOn(disk)), undefined);
  await assert.rejects(agent.dynamic.rollback({ toLocal: false }, { signal }), /local configuration is in force/);
});

test("applied while no agent runs: the next one starts with it, with all its starts left", async () => {
  const disk = await diskWithGood();
  const command = agentOn(disk);
  await command.dynamic.open({ signal });
  await apply(command, { v: 2 });
  for (let start = 0; start < MOST_STARTS; start++) assert.deepEqual(await started(agentOn(disk)), { v: 2 });
  assert.deepEqual(await started(agentOn(disk)), { v: 1 });
});

test("the layout of v1.9 is read, and what is applied goes into the later one", async () => {
  const disk = new Disk();
  const pointer = (uid: string): string =>
    JSON.stringify({ kind: "NodeConfigSource", apiVersion: "v1", configMapRef: { namespace: "n", name: "c", uid } });
  const map = (value: object): string =>
    JSON.stringify({ kind: "ConfigMap", data: { kubelet: JSON.stringify(value) } });
  disk.content.set("/d/checkpoints/.cur", pointer("a"));
  disk.content.set("/d/checkpoints/.lkg", pointer("b"));
  disk.content.set("/d/checkpoints/a", map({ v: "a" }));
  disk.content.set("/d/checkpoints/b", map({ v: "b" }));
  assert.deepEqual(await started(agentOn(disk)), { v: "a" });
  disk.content.set("/d/checkpoints/a", map({ bad: 1 }));
  const agent = agentOn(disk);
  assert.deepEqual(await started(agent), { v: "b" });
  await apply(agent, { v: 2 });
  const next = agentOn(disk);
  assert.deepEqual(await started(next), { v: 2 });
  assert.equal(next.dynamic.report().lastKnownGood?.uid, "b");
  disk.content.set("/d/checkpoints/.cur", "");
  disk.content.delete(`${META}/assigned`);
  assert.equal(await started(agentOn(disk)), undefined, "an empty pointer is the local configuration");
});

test("the pointers that kubelets of v1.11 wrote are read; one that leads out of the store is damaged", async () => {
  const disk = new Disk();
  const ref = { namespace: "n", name: "c", uid: "u", resourceVersion: "7", kubeletConfigKey: "k" };
  const pointer = (configMap: object): string =>
    JSON.stringify({ apiVersion: "x", kind: "SerializedNodeConfigSource", source: { configMap } });
  disk.content.set(`${META}/assigned`, pointer(ref));
  disk.content.set("/d/store/checkpoints/u/7/k", '{"v":7}');
  assert.deepEqual(await started(agentOn(disk)), { v: 7 });
  disk.content.set(`${META}/assigned`, pointer({ ...ref, kubeletConfigKey: ".." }));
  const agent = agentOn(disk);
  assert.equal(await started(agent), undefined);
  assert.match(agent.dynamic.report().error ?? "", /is not a plain file name/);
});
