import assert from "node:assert/strict";
import { test } from "node:test";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import type { ConfigDocument } from "../document.ts";
import { DynamicConfiguration } from "./dynamic-configuration.ts";
import { type ConfigMapVersion, DynamicStore } from "./store.ts";

const { signal } = manyListeners();
const TRIAL_MS = 600_000;
const version = (resourceVersion: string): ConfigMapVersion => ({
  namespace: "ops",
  name: "web",
  uid: "u-1",
  resourceVersion,
  key: "kubelet",
});
const BY = { by: "the annotation" };

/** One life of an agent on a disk. A configuration is JSON; one with `bad` is not valid. */
async function agentOn(disk: Map<string, string>) {
  const clock = new FakeClock();
  const parse = async (text: string): Promise<unknown> => JSON.parse(text);
  const files = {
    read: async (path: string) => disk.get(path),
    write: async (path: string, content: string) => void disk.set(path, content),
    list: async () => [],
  };
  const site = { used: [] as unknown[], events: [] as string[], changes: 0 };
  const dynamic = new DynamicConfiguration({
    store: new DynamicStore({ files, parse }, "/d"),
    clock,
    log: silent,
    event: ({ reason }) => void site.events.push(reason),
    parse: async (text, file) => ({ file, directory: "/", value: await parse(text), line: 1, warnings: [] }),
    judge: ({ value }) => (Object.keys(value as object).includes("bad") ? ["bad: is not valid"] : []), // reason: JSON
    use: async (document: ConfigDocument | undefined) => {
      site.used.push(document?.value);
      return { applied: [], restart: [], reload: [], problems: [], warnings: [] };
    },
    isWhole: () => true,
    health: async () => undefined,
    trialMs: () => TRIAL_MS,
  });
  dynamic.onChange(() => void site.changes++, { signal });
  const began = (await dynamic.start({ signal }))?.value;
  return Object.assign(site, { dynamic, clock, began });
}

/** A disk whose last known good is version 1, `{"v":1}`. */
async function diskWithGood(): Promise<Map<string, string>> {
  const disk = new Map<string, string>();
  const { dynamic, clock } = await agentOn(disk);
  const stop = new AbortController();
  const running = dynamic.run(stop.signal);
  await dynamic.assign('{"v":1}', version("1"), { signal });
  await clock.advance(TRIAL_MS + 10_000);
  assert.equal(dynamic.report().state, "good");
  stop.abort();
  await running;
  return disk;
}

test("a ConfigMap's version is kept in the layout of v1.11 and taken on trial; again it changes nothing", async () => {
  const disk = new Map<string, string>();
  const { dynamic, used } = await agentOn(disk);
  await dynamic.assign('{"v":1}', version("7"), { signal });
  await dynamic.assign('{"v":1}', version("7"), { signal });
  assert.deepEqual(used, [{ v: 1 }]);
  assert.equal(dynamic.report().state, "trial");
  assert.equal(disk.get("/d/store/checkpoints/u-1/7/kubelet"), '{"v":1}');
  const { source } = JSON.parse(disk.get("/d/store/meta/assigned") ?? "");
  const configMap = { namespace: "ops", name: "web", uid: "u-1", resourceVersion: "7", kubeletConfigKey: "kubelet" };
  assert.deepEqual(source, { configMap });
});

test("one that is not valid is assigned, rolled back to the last known good, and so after a restart", async () => {
  const disk = await diskWithGood();
  const agent = await agentOn(disk);
  assert.deepEqual(agent.began, { v: 1 });
  await agent.dynamic.assign('{"bad":1}', version("2"), { signal });
  const { state, assigned, active, error } = agent.dynamic.report();
  assert.deepEqual([state, assigned?.resourceVersion, active?.resourceVersion], ["rolled back", "2", "1"]);
  assert.match(error ?? "", /bad: is not valid/);
  assert.deepEqual(agent.used, [{ v: 1 }]);
  assert.deepEqual(agent.events, ["ConfigRolledBack"]);
  const next = await agentOn(disk);
  assert.deepEqual(next.began, { v: 1 });
  await next.dynamic.assign('{"bad":1}', version("2"), { signal });
  assert.equal(next.dynamic.report().state, "rolled back");
  await next.dynamic.assign('{"v":3}', version("3"), { signal });
  assert.equal(next.dynamic.report().state, "trial");
  assert.deepEqual(next.used, [{ v: 3 }]);
});

test("text that cannot be parsed is rolled back to the local configuration where none was good", async () => {
  const { dynamic, used } = await agentOn(new Map());
  await dynamic.assign("{", version("1"), { signal });
  const { state, active } = dynamic.report();
  assert.deepEqual([state, active, used], ["rolled back", undefined, [undefined]]);
});

test("a checkpoint that was damaged meanwhile is written again", async () => {
  const disk = await diskWithGood();
  disk.set("/d/store/checkpoints/u-1/1/kubelet", '{"v":');
  const { dynamic, began, used } = await agentOn(disk);
  assert.equal(began, undefined);
  await dynamic.assign('{"v":1}', version("1"), { signal });
  assert.deepEqual(used, [{ v: 1 }]);
  assert.equal(disk.get("/d/store/checkpoints/u-1/1/kubelet"), '{"v":1}');
});

test("a name that leads out of the store is refused and nothing is written", async () => {
  const disk = new Map<string, string>();
  const { dynamic } = await agentOn(disk);
  await assert.rejects(dynamic.assign("{}", { ...version("1"), uid: ".." }, { signal }), /is not a plain file name/);
  assert.equal(disk.size, 0);
});

test("released, the node is back on the local configuration, also after a restart", async () => {
  const disk = await diskWithGood();
  const { dynamic, used } = await agentOn(disk);
  await dynamic.release("over");
  assert.deepEqual(used, [undefined]);
  const { state, assigned, lastKnownGood } = dynamic.report();
  assert.deepEqual([state, assigned, lastKnownGood], ["local", undefined, undefined]);
  assert.equal((await agentOn(disk)).began, undefined);
});

test("a configuration of this machine's own is no concern of the cluster's silence", async () => {
  const { dynamic } = await agentOn(new Map());
  await dynamic.apply('{"v":1}', "/mine.json", { signal });
  await dynamic.release("over");
  assert.equal(dynamic.report().state, "trial");
});

test("while the cluster decides, apply and rollback on the machine are refused", async () => {
  const { dynamic } = await agentOn(new Map());
  await dynamic.assign('{"v":1}', version("1"), { signal });
  dynamic.follow(BY);
  await assert.rejects(dynamic.apply('{"v":2}', "/mine.json", { signal }), /assigned by the annotation/);
  await assert.rejects(dynamic.rollback({ toLocal: true }, { signal }), /assigned by the annotation/);
  dynamic.follow(undefined);
  await dynamic.rollback({ toLocal: true }, { signal });
  assert.equal(dynamic.report().state, "local");
});

test("who follows hears of each change, and not of what is as it was", async () => {
  const agent = await agentOn(new Map());
  agent.dynamic.follow(BY);
  agent.dynamic.follow({ ...BY });
  assert.equal(agent.changes, 1);
  agent.dynamic.follow({ ...BY, error: "gone" });
  assert.deepEqual(agent.dynamic.report().followed, { ...BY, error: "gone" });
  await agent.dynamic.assign('{"v":1}', version("1"), { signal });
  assert.equal(agent.changes, 3);
});
