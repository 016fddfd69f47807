import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAgentOptions } from "./agent.ts";
import { agentOptions } from "./agent-options.ts";
import { OptionStore } from "./store.ts";

const values = parseAgentOptions([]).values;
const { signal } = new AbortController();

test("a live option changes in its view and its listener hears it once", () => {
  const store = new OptionStore(agentOptions, values);
  const pulls = store.live("registryPullQPS", "registryBurst");
  const heard: number[] = [];
  pulls.onChange((value) => heard.push(value.registryPullQPS), { signal });
  assert.deepEqual(store.update({ ...values, registryPullQPS: 7 }), { restart: [], reload: [] });
  assert.deepEqual(pulls.current, { registryPullQPS: 7, registryBurst: 10 });
  assert.deepEqual(heard, [7]);
});

test("a change of another option is not heard, and the view stays the same object", () => {
  const store = new OptionStore(agentOptions, values);
  const pulls = store.live("registryBurst");
  const before = pulls.current;
  pulls.onChange(() => assert.fail("heard a change of another option"), { signal });
  store.update({ ...values, maxPods: 5 });
  assert.equal(pulls.current, before);
  assert.equal(store.current.maxPods, 5);
});

test("an option that is not live keeps its value and is named as waiting for a restart", () => {
  const store = new OptionStore(agentOptions, values);
  const waiting = store.update({ ...values, rootDir: "/elsewhere", clusterDNS: [] });
  assert.deepEqual(waiting, { restart: ["rootDir"], reload: [] });
  assert.equal(store.current.rootDir, "/var/lib/kubelet");
});

test("asking for a live view of an option that is not live is refused", () => {
  assert.throws(() => new OptionStore(agentOptions, values).live("rootDir"), /rootDir is not live/);
});

test("an option that can reject pods waits for a reload unless this is one", () => {
  const store = new OptionStore(agentOptions, values);
  assert.deepEqual(store.update({ ...values, maxPods: 5 }, { reload: false }), { restart: [], reload: ["maxPods"] });
  assert.equal(store.current.maxPods, 110);
  assert.deepEqual(store.update({ ...values, maxPods: 5 }), { restart: [], reload: [] });
  assert.equal(store.current.maxPods, 5);
});
