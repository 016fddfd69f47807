import assert from "node:assert/strict";
import { test } from "node:test";
import { silent } from "../lib/log.ts";
import { agentOptions } from "./agent-options.ts";
import { type ConfigEvent, LiveConfiguration } from "./live-configuration.ts";
import { type ConfigInputs, loadConfiguration } from "./load.ts";
import { readInputs } from "./read.ts";
import { OptionStore } from "./store.ts";

const { signal } = new AbortController();
const ARGV = ["--config=/k.yaml", "--registry-burst=3"];

/** An agent's configuration whose file the test writes, as JSON. */
async function started(first: object) {
  const site = { content: JSON.stringify(head(first)), reads: 0 };
  const read = async (): Promise<ConfigInputs> => {
    site.reads++;
    const files = {
      stat: async () => ({ kind: "file" as const }),
      list: async () => [],
      read: async () => site.content,
    };
    const parse = async (text: string) => {
      return { documents: [{ value: JSON.parse(text) as unknown, line: 1, lines: new Map() }], warnings: [] };
    };
    return readInputs(ARGV, { files, parse }, { signal });
  };
  const inputs = await read();
  const loaded = loadConfiguration(inputs);
  const store = new OptionStore(agentOptions, loaded.values);
  const events: ConfigEvent[] = [];
  const event = (told: ConfigEvent): void => void events.push(told);
  const live = new LiveConfiguration({ store, log: silent, read, event }, { inputs, loaded });
  const write = (content: object): void => {
    site.content = JSON.stringify(head(content));
  };
  return { live, store, events, write, site };
}

function head(content: object): object {
  return { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", ...content };
}

test("what is live is in force at once, and an event says so", async () => {
  const { live, store, events, write } = await started({});
  write({ fileCheckFrequency: "3s", staticPodPath: "/m", logging: { verbosity: 4 } });
  const { applied, restart, reload } = await live.reload("live", { signal });
  assert.deepEqual(
    [[...applied].sort(), restart, reload],
    [["fileCheckFrequency", "staticPodPath", "verbosity"], [], []],
  );
  const { fileCheckFrequency, staticPodPath, verbosity } = store.current;
  assert.deepEqual([fileCheckFrequency, staticPodPath, verbosity], [3000, "/m", 4]);
  assert.deepEqual(
    events.map(({ reason }) => reason),
    ["ConfigChanged"],
  );
});

test("nothing changed: nothing is told", async () => {
  const { live, events } = await started({ maxPods: 4 });
  assert.deepEqual((await live.reload("all", { signal })).applied, []);
  assert.deepEqual(events, []);
});

test("what can reject pods waits for a reload of all, which then applies it", async () => {
  const { live, store, write, events } = await started({ maxPods: 4 });
  write({ maxPods: 9, registryPullQPS: 1 });
  const outcome = await live.reload("live", { signal });
  assert.deepEqual([outcome.applied, outcome.reload, store.current.maxPods], [["registryPullQPS"], ["maxPods"], 4]);
  assert.match(events.at(-1)?.message ?? "", /needs SIGHUP or "kubelet config apply" for maxPods/);
  assert.deepEqual((await live.reload("all", { signal })).applied, ["maxPods"]);
  assert.equal(store.current.maxPods, 9);
  assert.deepEqual(live.waiting, { restart: [], reload: [] });
});

test("what needs a restart is told once, stays as it was, and is forgotten when it is taken back", async () => {
  const { live, store, write, events } = await started({});
  write({ containerRuntimeEndpoint: "unix:///other.sock" });
  for (let i = 0; i < 3; i++) await live.reload("all", { signal });
  assert.deepEqual(live.waiting.restart, ["containerRuntimeEndpoint"]);
  assert.equal(store.current.containerRuntimeEndpoint, "unix:///run/containerd/containerd.sock");
  assert.equal(live.loaded.values.containerRuntimeEndpoint, "unix:///other.sock");
  const told = events.filter(({ reason }) => reason === "ConfigNeedsRestart");
  assert.deepEqual(
    told.map(({ message }) => message),
    ["the configuration needs a restart for containerRuntimeEndpoint"],
  );
  write({});
  await live.reload("all", { signal });
  assert.deepEqual(live.waiting.restart, []);
});

const bad = [
  { name: "a value out of range", content: { registryPullQPS: -1, fileCheckFrequency: "1s" }, says: /registryPullQPS/ },
  { name: "a wrong type", content: { maxPods: "many", fileCheckFrequency: "1s" }, says: /maxPods/ },
  {
    name: "a contradiction",
    content: { serializeImagePulls: true, maxParallelImagePulls: 3, fileCheckFrequency: "1s" },
    says: /maxParallelImagePulls=3 needs serializeImagePulls=false/,
  },
];
for (const { name, content, says } of bad) {
  test(`${name} leaves everything as it is and is told once`, async () => {
    const { live, store, write, events } = await started({ maxPods: 4 });
    const before = store.current;
    write(content);
    const { problems, applied } = await live.reload("all", { signal });
    await live.reload("all", { signal });
    assert.match(problems.join(), says);
    assert.deepEqual([applied, store.current === before, live.problems], [[], true, problems]);
    assert.deepEqual(
      events.map(({ reason }) => reason),
      ["ConfigInvalid"],
    );
    write({ maxPods: 5 });
    await live.reload("all", { signal });
    assert.deepEqual([live.problems, store.current.maxPods], [[], 5]);
  });
}

test("a file cut at every byte leaves everything as it is", async () => {
  const { live, store, write, site } = await started({ maxPods: 4 });
  const before = store.current;
  write({ maxPods: 7 });
  const whole = site.content;
  for (let length = 0; length < whole.length; length++) {
    site.content = whole.slice(0, length);
    assert.notDeepEqual((await live.reload("all", { signal })).problems, [], site.content);
    assert.equal(store.current, before);
  }
});

test("values that are only good together with one that waits for a restart wait with it", async () => {
  const { live, store, write } = await started({});
  // The format needs a restart; levels of single files are live but go only with text.
  write({ logging: { format: "json" } });
  await live.reload("all", { signal });
  write({ logging: { format: "text", vmodule: [{ filePattern: "a", verbosity: 3 }] } });
  assert.deepEqual((await live.reload("all", { signal })).applied, ["vmodule"]);
  const json = await started({ logging: { format: "json" } });
  json.write({ logging: { format: "text", vmodule: [{ filePattern: "a", verbosity: 3 }] } });
  const { applied, restart } = await json.live.reload("all", { signal });
  assert.deepEqual([applied, [...restart].sort()], [[], ["loggingFormat", "vmodule"]]);
  assert.deepEqual(json.store.current.vmodule, []);
  assert.equal(store.current.loggingFormat, "text");
});

test("a flag stays over whatever the file says", async () => {
  const { live, store, write } = await started({});
  write({ registryBurst: 99 });
  assert.deepEqual((await live.reload("all", { signal })).applied, []);
  assert.equal(store.current.registryBurst, 3);
});

test("changes at the same time are handled one after the other, the last one wins", async () => {
  const { live, store, write } = await started({});
  const turns = [1, 2, 3].map((maxPods) => {
    write({ maxPods });
    return live.reload("all", { signal });
  });
  await Promise.all(turns);
  assert.equal(store.current.maxPods, 3);
});

test("a dynamic configuration takes the place of the file; an invalid one changes nothing", async () => {
  const { live, store, write } = await started({ maxPods: 4 });
  const document = (value: object) => ({ file: "dyn", directory: "/", value: head(value), line: 1, warnings: [] });
  await live.useDynamic(document({ maxPods: 8 }));
  assert.equal(store.current.maxPods, 8);
  assert.match((await live.useDynamic(document({ maxPods: -8 }))).problems.join(), /maxPods/);
  write({ maxPods: 5 });
  await live.reload("all", { signal });
  assert.equal(store.current.maxPods, 8, "still the dynamic one");
  await live.useDynamic(undefined);
  assert.equal(store.current.maxPods, 5);
});
