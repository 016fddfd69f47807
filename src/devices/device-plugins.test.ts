import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { countCpu } from "../../test/support/cpu-time.ts";
import { DeviceBench, type Listing, ScriptedPlugin, timeout, unavailable } from "../../test/support/device-bench.ts";
import { pod } from "../../test/support/pods.ts";
import { ContainerAllocateResponse, Device } from "../adapters/devices/generated/deviceplugin.ts";
import { RuntimeError } from "../adapters/runtime/port.ts";
import { type Abortable, AbortedError } from "../lib/abort.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { ANYWHERE, numaMask } from "../model/topology.ts";
import { encodeCheckpoint } from "./checkpoint.ts";

const GPU = "example.com/gpu";
const { signal } = new AbortController();

function asks(count: number, resource = GPU): Partial<Container> {
  const amounts = { [resource]: String(count) };
  return { resources: { limits: amounts, requests: amounts } };
}

function podOf(name: string, count = 1): Pod {
  return pod(name).container("app", asks(count)).build();
}

const admit = (bench: DeviceBench, of: Pod): Promise<void> => bench.admit(of);

const idsOf = (bench: DeviceBench, of: Pod, container = "app"): string[] =>
  [
    ...(bench.plugins.pods
      .of(of.metadata.uid ?? "", container)
      .get(GPU)
      ?.byNode.values() ?? []),
  ].flat();

describe("device plugins", () => {
  test("report their devices, and what becomes unhealthy is not allocatable", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {}, b: {} });
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 2, allocatable: 2 });
    plugin.list({ a: {}, b: { health: "Unhealthy" } });
    await bench.clock.advance(0);
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 2, allocatable: 1 });
    bench.close();
  });

  test("that list megabytes of ids leave the checkpoint small: their resources are restored, and who has what", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {} });
    const of = podOf("p");
    await admit(bench, of);
    const ids = Array.from({ length: 3000 }, (_, at) => [String(at).padEnd(1000, "x"), {}] as const);
    for (const name of ["a", "b", "c"]) await bench.plugin(`hostile.example/${name}`, Object.fromEntries(ids));
    let isSaved = false;
    const saved = bench.plugins.store.save().finally(() => (isSaved = true));
    while (!isSaved) await bench.clock.advance(0);
    await saved;
    assert.ok((bench.checkpoint ?? "").length < 5_000_000);
    bench.restart();
    assert.deepEqual([...bench.plugins.inventory.counts().keys()].sort(), [
      GPU,
      "hostile.example/a",
      "hostile.example/b",
      "hostile.example/c",
    ]);
    assert.deepEqual(idsOf(bench, of), ["a"]);
    bench.close();
  });

  test("that are gone leave their capacity for five minutes, then 0", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    plugin.end();
    await bench.clock.advance(0);
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 1, allocatable: 0 });
    assert.ok(plugin.isClosed);
    await bench.clock.advance(299_000);
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 1, allocatable: 0 });
    await bench.clock.advance(2000);
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 0, allocatable: 0 });
    assert.equal(bench.plugins.admissible().get(GPU), 0);
    assert.equal(bench.clock.waiting, 0);
    bench.close();
  });

  test("one that keeps coming and going does not delay the removal of another", async () => {
    const bench = new DeviceBench();
    (await bench.plugin(GPU, { a: {} })).end();
    for (let minute = 0; minute < 5; minute++) {
      (await bench.plugin("example.com/flaky", { x: {} })).end();
      await bench.clock.advance(60_000);
    }
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 0, allocatable: 0 });
    bench.close();
  });

  test("that are gone one after the other are removed one after the other", async () => {
    const bench = new DeviceBench();
    const [first, second] = [await bench.plugin(GPU, { a: {} }), await bench.plugin("example.com/nic", { x: {} })];
    first.end();
    await bench.clock.advance(60_000);
    second.end();
    await bench.clock.advance(240_000);
    const capacities = () => [...bench.plugins.inventory.counts()].map(([name, { capacity }]) => `${name} ${capacity}`);
    assert.deepEqual(capacities().sort(), [`${GPU} 0`, "example.com/nic 1"]);
    await bench.clock.advance(60_000);
    assert.deepEqual(capacities().sort(), [`${GPU} 0`, "example.com/nic 0"]);
    bench.close();
  });

  test("are left with the agent, and no timer stays behind", async () => {
    const bench = new DeviceBench();
    await bench.plugin("example.com/nic", { x: {} });
    bench.restart();
    const plugin = await bench.plugin(GPU, { a: {} });
    bench.close();
    assert.deepEqual([plugin.isClosed, bench.clock.waiting], [true, 0]);
  });

  test("whose list fails at once have no devices, and are not asked again", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU);
    plugin.end(new Error("ListAndWatch failed"));
    await bench.clock.advance(60_000);
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 0, allocatable: 0 });
    assert.deepEqual(plugin.calls, ["options"]);
    bench.close();
  });

  test("that do not tell their options are refused", async () => {
    const bench = new DeviceBench();
    const plugin = new ScriptedPlugin();
    plugin.faults.set("options", new Error("GetDevicePluginOptions failed"));
    bench.sockets.set("s", plugin);
    await assert.rejects(
      bench.register(GPU, "s"),
      /^Error: failed to get device plugin options: GetDevicePluginOptions/,
    );
    assert.equal(bench.plugins.inventory.counts().has(GPU), false);
    assert.ok(plugin.isClosed);
    bench.close();
  });

  test("that answer, but do not know the call, are refused at once", async () => {
    const bench = new DeviceBench();
    const plugin = new ScriptedPlugin();
    plugin.faults.set("options", new RuntimeError("Unimplemented", "unknown service"));
    bench.sockets.set("s", plugin);
    await assert.rejects(bench.register(GPU, "s"), /failed to get device plugin options: .*unknown service/);
    bench.close();
  });

  test("with another version or a name that is none are refused before they are called", async () => {
    const bench = new DeviceBench();
    bench.sockets.set("s", new ScriptedPlugin());
    const register = (resource: string, version: string): Promise<void> =>
      bench.plugins.register({ resource, versions: [version], socket: "s" }, { signal });
    await assert.rejects(register(GPU, "v2"), /requested API version "v2" is not supported by kubelet/);
    await assert.rejects(register("kubernetes.io/gpu", "v1beta1"), /the ResourceName "kubernetes.io\/gpu" is invalid/);
    assert.deepEqual([...bench.plugins.inventory.counts()], []);
    assert.deepEqual(bench.sockets.get("s")?.calls, []);
    bench.close();
  });

  test("that register on kubelet.sock are looked for in the directory of plugins, and nowhere else", async () => {
    const bench = new DeviceBench();
    const register = (endpoint: string, version = "v1beta1"): Promise<void> =>
      bench.plugins.registerEndpoint({ resourceName: GPU, version, endpoint }, { signal });
    for (const socket of ["/plugins/gpu.sock", "/run/gpu.sock"]) bench.sockets.set(socket, new ScriptedPlugin());
    await assert.rejects(register("../run/gpu.sock"), /is not a socket in the directory of device plugins/);
    await assert.rejects(register("gpu.sock", "v2"), /requested API version "v2" is not supported/);
    await register("gpu.sock");
    const called = [...bench.sockets].filter(([, { calls }]) => calls.length > 0).map(([socket]) => socket);
    assert.deepEqual(called, ["/plugins/gpu.sock"]);
    assert.equal(bench.plugins.inventory.isConnected(GPU), true);
    bench.close();
  });

  test("that register on kubelet.sock are counted, also if they are refused, but not those of the watched directory", async () => {
    const bench = new DeviceBench();
    bench.sockets.set("/plugins/x.sock", new ScriptedPlugin());
    const ask = (resourceName: string, version = "v1beta1", endpoint = "./x.sock") =>
      bench.plugins.registerEndpoint({ resourceName, version, endpoint }, { signal });
    await ask(GPU);
    await ask(GPU);
    await assert.rejects(ask("example.com/old", "v1alpha"), /not supported/);
    await assert.rejects(ask("example.com/outside", "v1beta1", "../x.sock"), /is not a socket in the directory/);
    await assert.rejects(ask("not a name"), /is invalid/);
    await bench.plugin("example.com/watched");
    assert.deepEqual(bench.registered, [GPU, GPU, "example.com/old", "example.com/outside"]);
    bench.close();
  });

  test("may register shortly before they listen, but not longer", async () => {
    const bench = new DeviceBench();
    const plugin = new ScriptedPlugin();
    plugin.faults.set("options", unavailable);
    bench.sockets.set("s", plugin);
    const registered = bench.register(GPU, "s");
    await bench.clock.advance(5000);
    plugin.faults.clear();
    await bench.clock.advance(100);
    await registered;
    assert.equal(plugin.deadlines.get("options"), 4900, "what is left of ten seconds");
    const refused = assert.rejects(bench.register("example.com/dead", "dead"), /failed to dial device plugin/);
    await bench.clock.advance(10_000);
    await refused;
    bench.close();
  });

  test("that register in great numbers and do not listen are dialled a bounded number of times a second", async () => {
    const bench = new DeviceBench();
    const dead = Array.from({ length: 700 }, () => new ScriptedPlugin());
    const refusals = new Map<string, number>();
    for (const [at, plugin] of dead.entries()) {
      plugin.faults.set("options", unavailable);
      bench.sockets.set(`/dead${at}`, plugin);
      bench.register(`example.com/r${at}`, `/dead${at}`).catch(({ message }: Error) => {
        refusals.set(message, (refusals.get(message) ?? 0) + 1);
      });
    }
    await bench.clock.advance(0);
    assert.deepEqual([...refusals], [["more than 500 resources have device plugins", 200]]);
    await bench.clock.advance(1000);
    const calls = () => dead.flatMap((plugin) => plugin.calls).length;
    assert.ok(calls() > 100 && calls() <= 300, `${calls()} calls in the first second`);
    await bench.clock.advance(20_000);
    assert.ok(calls() <= 4000, `${calls()} calls in all`);
    assert.equal(refusals.get("failed to dial device plugin: connection refused"), 500);
    await bench.plugin(GPU, { a: {} });
    assert.equal(bench.plugins.inventory.counts().get(GPU)?.allocatable, 1);
    bench.close();
  });

  test("that listen are connected while others that do not are dialled", async () => {
    const bench = new DeviceBench();
    for (let at = 0; at < 300; at++) bench.register(`example.com/r${at}`, `/dead${at}`).catch(() => undefined);
    await bench.clock.advance(1000);
    bench.sockets.set("/live", new ScriptedPlugin());
    const registered = bench.register(GPU, "/live");
    await bench.clock.advance(2000);
    await registered;
    assert.ok(bench.plugins.inventory.isConnected(GPU));
    bench.close();
  });

  test("that register again while they are dialled have one connection, the last", async () => {
    const bench = new DeviceBench();
    const silent = new ScriptedPlugin();
    silent.faults.set("options", unavailable);
    bench.sockets.set("/silent", silent);
    const refused = assert.rejects(bench.register(GPU, "/silent"), /superseded by a later registration/);
    await bench.clock.advance(0);
    assert.equal(silent.isClosed, false);
    await bench.plugin(GPU, { a: {} });
    assert.equal(silent.isClosed, true);
    await bench.clock.advance(200);
    await refused;
    assert.equal(bench.plugins.inventory.counts().get(GPU)?.allocatable, 1);
    bench.close();
  });

  test("that are dialled while a later one registers do not take its place, also if they answer at last", async () => {
    const bench = new DeviceBench();
    const slow = new ScriptedPlugin();
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    slow.options = () => answered.then(() => ({ preStartRequired: false, getPreferredAllocationAvailable: false }));
    bench.sockets.set("/slow", slow);
    const refused = assert.rejects(bench.register(GPU, "/slow"), /superseded by a later registration/);
    const later = await bench.plugin(GPU, { a: {} });
    answer();
    await refused;
    assert.deepEqual([slow.isClosed, later.isClosed], [true, false]);
    await admit(bench, podOf("web"));
    assert.deepEqual(later.calls, ["options", "allocate a"]);
    bench.close();
  });

  test("stay in use while another that registers for their resource cannot be reached", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    const refused = assert.rejects(bench.register(GPU, "dead"), /failed to dial device plugin/);
    await bench.clock.advance(10_000);
    await refused;
    assert.equal(plugin.isClosed, false);
    await admit(bench, podOf("web"));
    bench.close();
  });

  test("that register again have the devices of before until they list, also after the grace period", async () => {
    const bench = new DeviceBench();
    (await bench.plugin(GPU, { a: {} })).end();
    await bench.clock.advance(200_000);
    const plugin = await bench.plugin(GPU);
    await bench.clock.advance(200_000);
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 1, allocatable: 0 });
    plugin.list({ a: {} });
    await bench.clock.advance(1000);
    await bench.plugin(GPU);
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 1, allocatable: 1 });
    bench.close();
  });

  test("that register anew before it is their turn have one connection", async () => {
    const bench = new DeviceBench();
    const silent = Array.from({ length: 30 }, (_, at) => bench.register(`example.com/r${at}`, `/dead${at}`));
    const plugin = new ScriptedPlugin();
    bench.sockets.set("/again", plugin);
    const registrations = Array.from({ length: 10 }, () => bench.register(GPU, "/again"));
    const outcomes = Promise.allSettled([...registrations, ...silent]);
    await bench.clock.advance(20_000);
    assert.equal((await outcomes).slice(0, 10).filter(({ status }) => status === "fulfilled").length, 1);
    assert.equal(plugin.calls.filter((call) => call === "options").length, 1);
    bench.close();
  });

  test("that come and go cost one timer", async () => {
    const bench = new DeviceBench();
    const timers: number[] = [];
    for (let times = 0; times < 3; times++) {
      const plugin = await bench.plugin(GPU, { a: {} });
      plugin.end();
      await bench.clock.advance(0);
      timers.push(bench.clock.waiting);
    }
    assert.deepEqual(timers, [1, 1, 1]);
    bench.close();
  });

  test("whose call is given up has not failed", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU);
    Object.assign(plugin, { preferred: [], preStartRequired: true });
    await bench.register(GPU, `${GPU}.sock`);
    const { connections } = bench.plugins;
    const calls = {
      prefer: (options: Abortable) => connections.prefer(GPU, { offered: ["a", "b"], included: [], size: 1 }, options),
      preStart: (options: Abortable) => connections.preStart(GPU, ["a"], options),
      options: (options: Abortable) => connections.register(GPU, `${GPU}.sock`, options),
    };
    for (const [method, call] of Object.entries(calls)) {
      const stop = new AbortController();
      const givenUp = (): Promise<never> => {
        stop.abort();
        return Promise.reject(new AbortedError());
      };
      Object.assign(plugin, { [method]: givenUp });
      await assert.rejects(call(stop), AbortedError, method);
    }
    bench.close();
  });

  test("give each call a deadline: a minute for what pods are admitted by", async () => {
    const bench = new DeviceBench();
    const plugin = new ScriptedPlugin();
    plugin.preferred = [];
    plugin.preStartRequired = true;
    bench.sockets.set("s", plugin);
    await bench.register(GPU, "s");
    plugin.list({ a: {}, b: {} });
    await bench.clock.advance(0);
    await admit(bench, podOf("web"));
    await bench.plugins.connections.preStart(GPU, ["a"], { signal });
    const deadlines = { options: 10_000, prefer: 60_000, allocate: 60_000, preStart: 30_000 };
    assert.deepEqual(Object.fromEntries(plugin.deadlines), deadlines);
    bench.close();
  });

  test("that list what cannot be used are told of once", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU);
    for (const id of ["a", "b"]) plugin.list({ "": {}, [id]: {} });
    await bench.clock.advance(1000);
    assert.deepEqual([...bench.plugins.inventory.devices(GPU).keys()], ["b"]);
    assert.deepEqual(bench.warnings, ["Ignored devices of a plugin"]);
    bench.close();
  });

  test("that register again replace the earlier one, whose end changes nothing", async () => {
    const bench = new DeviceBench();
    const first = await bench.plugin(GPU, { a: {} });
    await bench.plugin(GPU, { a: {}, b: {} });
    assert.ok(first.isClosed);
    first.end(new Error("killed"));
    await bench.clock.advance(0);
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 2, allocatable: 2 });
    bench.close();
  });

  test("that are found in the directory are gone with their socket, but not with that of an earlier one", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {} }, "/one");
    await bench.plugin(GPU, { a: {} }, "/two");
    bench.plugins.connections.deregister(GPU, "/one");
    assert.equal(bench.plugins.inventory.counts().get(GPU)?.allocatable, 1);
    bench.plugins.connections.deregister(GPU, "/two");
    assert.equal(bench.plugins.inventory.counts().get(GPU)?.allocatable, 0);
    bench.close();
  });

  test("with endless lists are read a few times a second", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU);
    for (let at = 0; at < 1000; at++) plugin.list({ [`d${at}`]: {} });
    await bench.clock.advance(2000);
    const { length } = bench.changes;
    assert.ok(length >= 20 && length < 50, `${length} changes`);
    bench.close();
  });

  test("with endless lists of very many devices are read now and then, also if they register for each anew", async () => {
    const bench = new DeviceBench();
    const many = (at: number) => Object.fromEntries(Array.from({ length: 20_000 }, (_, of) => [`d${at}-${of}`, {}]));
    for (let at = 0; at < 20; at++) {
      const plugin = await bench.plugin(GPU);
      plugin.list(many(at));
      plugin.list(many(-at));
      await bench.clock.advance(100);
    }
    const lists = bench.changes.length - 20;
    assert.ok(lists >= 4 && lists <= 7, `${lists} of 40 lists in two seconds, besides the registrations`);
    bench.close();
  });

  test("with long lists of few devices are read now and then, and no list is decoded before its turn", async () => {
    const bench = new DeviceBench();
    let decoded = 0;
    const read = () => {
      decoded++;
      return { devices: [] };
    };
    const plugin = await bench.plugin(GPU);
    for (let at = 0; at < 10; at++) plugin.send({ bytes: 1_000_000, read });
    await bench.clock.advance(3000);
    assert.ok(decoded >= 2 && decoded <= 3, `${decoded} lists of 1 MB in 3 s`);
    bench.close();
  });

  test("with long lists share the agent's time, and those with few devices do not wait for them", async () => {
    const bench = new DeviceBench();
    let decoded = 0;
    const read = () => {
      decoded++;
      return { devices: [] };
    };
    for (let at = 0; at < 100; at++) {
      const plugin = await bench.plugin(`example.com/r${at}`);
      for (let lists = 0; lists < 10; lists++) plugin.send({ bytes: 1_000_000, read });
    }
    await bench.clock.advance(0);
    assert.ok(decoded >= 13 && decoded <= 14, `${decoded} lists of 1 MB at once`);
    await bench.clock.advance(10_000);
    assert.ok(decoded >= 33 && decoded <= 39, `${decoded} lists of 1 MB in 10 s`);
    await bench.plugin(GPU, { a: {} });
    assert.equal(bench.plugins.inventory.counts().get(GPU)?.allocatable, 1);
    bench.close();
  });

  test("with long lists that wait are lost beyond 64 MiB of them", async () => {
    const bench = new DeviceBench();
    const read = () => ({ devices: [] });
    for (let at = 0; at < 40; at++) {
      const plugin = await bench.plugin(`example.com/r${at}`);
      for (let lists = 0; lists < 10; lists++) plugin.send({ bytes: 4_000_000, read });
    }
    await bench.clock.advance(0);
    const connected = Array.from({ length: 40 }, (_, at) => `example.com/r${at}`).filter((name) =>
      bench.plugins.inventory.isConnected(name),
    );
    assert.equal(connected.length, 16);
    bench.close();
  });

  test("with short lists are kept also while others' long ones wait", async () => {
    const bench = new DeviceBench();
    const read = () => ({ devices: [] });
    for (let at = 0; at < 40; at++) {
      const plugin = await bench.plugin(`example.com/r${at}`);
      for (let lists = 0; lists < 10; lists++) plugin.send({ bytes: 4_194_304, read });
    }
    await bench.plugin(GPU, { a: {}, b: {} });
    assert.equal(bench.plugins.inventory.counts().get(GPU)?.allocatable, 2);
    const long = await bench.plugin("example.com/nic");
    long.send({ bytes: 128 * 1024, read });
    await bench.clock.advance(1000);
    assert.equal(bench.plugins.inventory.isConnected("example.com/nic"), true);
    bench.close();
  });

  test("whose devices come and go quickly are followed: the newest list replaces those that wait", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    const list = (at: number): void => plugin.list({ a: { health: at % 2 === 0 ? "Healthy" : "Unhealthy" } });
    const healthy = (): number => bench.plugins.inventory.healthy(GPU).size;
    for (let at = 1; at <= 601; at++) {
      list(at);
      await bench.clock.advance(50);
    }
    await bench.clock.advance(1000);
    const { length } = bench.changes;
    assert.equal(healthy(), 0);
    await bench.clock.advance(300_000);
    assert.deepEqual([healthy(), bench.changes.length], [0, length], "nothing is left of the earlier lists");
    list(602);
    await bench.clock.advance(0);
    assert.equal(healthy(), 1);
    bench.close();
  });

  test("whose lists never end are not received faster than lists are replaced", async () => {
    const bench = new DeviceBench();
    const plugin = new ScriptedPlugin();
    bench.sockets.set("s", plugin);
    let received = 0;
    plugin.listAndWatch = async function* () {
      for (;;) {
        received++;
        yield { bytes: 10, read: () => ({ devices: [] }) };
      }
    };
    await bench.register(GPU, "s");
    await bench.clock.advance(0);
    assert.ok(received < 600, `${received} lists at once`);
    await bench.clock.advance(10_000);
    assert.ok(received > 1000 && received < 11_000, `${received} lists in 10 s`);
    bench.close();
  });

  test("that are replaced while they allocate for a pod may end that", async () => {
    const bench = new DeviceBench();
    const first = await bench.plugin(GPU, { a: {} }, "one");
    let answer: () => void = () => undefined;
    first.before = () => new Promise((resolve) => (answer = resolve));
    const admission = admit(bench, podOf("web"));
    await bench.clock.advance(0);
    await bench.plugin(GPU, { a: {} }, "two");
    assert.equal(first.isClosed, true);
    answer();
    await admission;
    assert.deepEqual(idsOf(bench, podOf("web")), ["a"]);
    bench.close();
  });

  test("that are lost while they allocate for a pod keep it no longer", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    plugin.before = () => new Promise(() => undefined);
    const admission = assert.rejects(admit(bench, podOf("web")), /connection refused/);
    await bench.clock.advance(0);
    plugin.end();
    await admission;
    bench.close();
  });

  test("that end while a list waits are lost after it, and those that fail at once", async () => {
    for (const [error, when] of [
      [undefined, 200],
      [new Error("reset"), 0],
    ] as const) {
      const bench = new DeviceBench();
      const plugin = await bench.plugin(GPU);
      for (let at = 0; at < 30; at++) plugin.list({ [`d${at}`]: {} });
      await bench.clock.advance(0);
      plugin.end(error);
      await bench.clock.advance(0);
      assert.equal(bench.plugins.inventory.isConnected(GPU), when > 0);
      await bench.clock.advance(when);
      assert.equal(bench.plugins.inventory.isConnected(GPU), false);
      bench.close();
    }
  });

  test("with lists that cannot be decoded are lost, and gain nothing when they register for each anew", async () => {
    const bench = new DeviceBench();
    let decoded = 0;
    const read = () => {
      decoded++;
      throw new Error("the message has too many fields");
    };
    for (let at = 0; at < 10; at++) {
      (await bench.plugin(GPU)).send({ bytes: 1_000_000, read });
      await bench.clock.advance(100);
      assert.equal(bench.plugins.inventory.isConnected(GPU), at >= 2);
    }
    assert.equal(decoded, 2);
    bench.close();
  });

  test("that list more devices than all may are lost, others are not", async () => {
    const bench = new DeviceBench();
    const devices = Array.from({ length: 99_999 }, (_, at) => Device.fromPartial({ ID: `d${at}`, health: "Healthy" }));
    const counts = () => bench.plugins.inventory.counts();
    for (const name of ["a", "b", "c", "d"]) {
      (await bench.plugin(`example.com/${name}`)).send({ bytes: 1000, read: () => ({ devices }) });
      await bench.clock.advance(0);
    }
    await bench.plugin(GPU, { a: {} });
    assert.equal(counts().get("example.com/c")?.allocatable, 99_999);
    assert.deepEqual(counts().get("example.com/d"), { capacity: 0, allocatable: 0 });
    assert.equal(bench.plugins.inventory.isConnected("example.com/d"), false);
    assert.deepEqual(bench.warnings, ["Lost device plugin"]);
    assert.equal(counts().get(GPU)?.allocatable, 1);
    // Those of a lost plugin count until they are removed.
    bench.plugins.connections.deregister("example.com/a", "example.com/a.sock");
    await bench.clock.advance(301_000);
    (await bench.plugin("example.com/d")).send({ bytes: 1000, read: () => ({ devices }) });
    await bench.clock.advance(0);
    assert.equal(counts().get("example.com/d")?.allocatable, 99_999);
    bench.close();
  });

  test("for ever new resources are refused at some point, also if they end at once", async () => {
    const bench = new DeviceBench();
    for (let at = 0; at < 500; at++) {
      const resource = `example.com/r${at}`;
      bench.sockets.set("s", new ScriptedPlugin());
      await bench.register(resource, "s");
      bench.plugins.connections.deregister(resource, "s");
    }
    bench.sockets.set("s", new ScriptedPlugin());
    await assert.rejects(bench.register("example.com/more", "s"), /more than 500 resources had device plugins/);
    await bench.register("example.com/r7", "s");
    bench.close();
  });

  test("with thousands of devices in use do not keep the agent busy when they are lost", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, {});
    const ids = Array.from({ length: 4000 }, (_, at) => `d${at}`);
    plugin.list(Object.fromEntries(ids.map((id) => [id, {}])));
    await bench.clock.advance(1000);
    const answer = plugin.answer as NonNullable<typeof plugin.answer>;
    for (let at = 0; at < 250; at++) {
      const byNode = new Map([[-1, ids.slice(at * 16, at * 16 + 16)]]);
      bench.plugins.pods.set({ uid: `uid-${at}`, container: "app", resource: GPU }, { byNode, answer });
    }
    bench.changes.length = 0;
    const cpuMs = countCpu();
    bench.plugins.connections.deregister(GPU, `${GPU}.sock`);
    const tookMs = cpuMs();
    assert.equal(bench.changes[0]?.length, 250);
    assert.ok(tookMs < 2000, `${tookMs} ms`);
    bench.close();
  });

  test("tell which pods a change of health concerns", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {}, b: {} });
    const web = podOf("web");
    await admit(bench, web);
    bench.changes.length = 0;
    const [held = ""] = idsOf(bench, web);
    plugin.list({ a: {}, b: {}, [held]: { health: "Unhealthy" } });
    await bench.clock.advance(1000);
    assert.deepEqual(bench.changes, [["uid-of-web"]]);
    bench.close();
  });

  test("tell which pods have a device that is not listed any more, and nobody of a list that is the same", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {}, b: {}, c: { nodes: [1] } });
    await admit(bench, podOf("web"));
    bench.changes.length = 0;
    plugin.list({ a: {}, b: {}, c: { nodes: [1] } });
    await bench.clock.advance(1000);
    assert.deepEqual(bench.changes, []);
    plugin.list({ b: {}, c: { nodes: [1] } });
    await bench.clock.advance(1000);
    assert.deepEqual(bench.changes, [["uid-of-web"]]);
    bench.close();
  });
});

describe("an allocation of devices", () => {
  test("is kept across a restart of the agent, without the plugin too", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {} });
    const web = podOf("web");
    await admit(bench, web);
    const before = idsOf(bench, web);
    bench.restart();
    assert.deepEqual(idsOf(bench, web), before);
    assert.deepEqual(bench.plugins.inventory.counts().get(GPU), { capacity: 0, allocatable: 0 });
    assert.equal(bench.plugins.admissible().get(GPU), 1);
    await bench.plugin(GPU, { a: {}, b: {} });
    const other = podOf("other");
    await admit(bench, other);
    assert.notDeepEqual(idsOf(bench, other), before);
    await assert.rejects(
      admit(bench, podOf("third")),
      /requested number of devices unavailable for example.com\/gpu. Requested: 1, Available: 0/,
    );
    bench.close();
  });

  test("of before a reboot is an error until the plugin is back with healthy devices", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {} });
    const web = podOf("web");
    await admit(bench, web);
    const [held = ""] = idsOf(bench, web);
    bench.restart();
    const again = async () => bench.allocator.reserve(web, web.spec.containers[0] as Container, ANYWHERE);
    await assert.rejects(
      again(),
      /^Error: no healthy devices present; cannot allocate unhealthy devices example.com\/gpu$/,
    );
    const plugin = await bench.plugin(GPU, { a: {}, b: {}, [held]: { health: "Unhealthy" } });
    await assert.rejects(again(), /^Error: previously allocated devices are no longer healthy; cannot allocate/);
    plugin.list({ a: {}, b: {} });
    await bench.clock.advance(1000);
    await admit(bench, web);
    assert.deepEqual(idsOf(bench, web), [held]);
    assert.deepEqual(
      plugin.calls.filter((call) => call.startsWith("allocate")),
      [],
    );
    bench.close();
  });

  test("of several devices of before a reboot is an error if one of them is not healthy any more", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {}, c: {} });
    const web = podOf("web", 2);
    await admit(bench, web);
    bench.restart();
    await bench.plugin(GPU, { a: {}, b: { health: "Unhealthy" }, c: {} });
    assert.throws(() => bench.allocator.readmit(web), /^Error: previously allocated devices are no longer healthy/);
    bench.close();
  });

  test("of a resource whose plugin is removed is an error for a pod that had it", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {} });
    const web = podOf("web");
    await admit(bench, web);
    bench.restart();
    await bench.clock.advance(301_000);
    assert.throws(
      () => bench.allocator.reserve(web, web.spec.containers[0] as Container, ANYWHERE),
      /^Error: cannot allocate unregistered device example.com\/gpu$/,
    );
    bench.close();
  });

  test("shares devices of init containers with those after them, but not those of sidecars", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {} });
    const sidecar = { ...asks(1), restartPolicy: "Always" as const };
    const web = pod("web").init("setup", asks(1)).init("proxy", sidecar).container("app", asks(1)).build();
    await admit(bench, web);
    assert.deepEqual(idsOf(bench, web, "setup"), idsOf(bench, web, "proxy"));
    assert.notDeepEqual(idsOf(bench, web, "app"), idsOf(bench, web, "proxy"));
    bench.close();
  });

  test("is never made of devices that are not healthy", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: { health: "Unhealthy", nodes: [0] }, b: { nodes: [1] } });
    assert.deepEqual([...bench.allocator.free(GPU)], [[1, 1]]);
    const both = podOf("both", 2);
    await assert.rejects(admit(bench, both), /Requested: 2, Available: 1/);
    await admit(bench, podOf("web"));
    assert.deepEqual(idsOf(bench, podOf("web")), ["b"]);
    bench.close();
  });

  test("never shares a device of one container with another that runs beside it", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {} });
    const web = pod("web").container("app", asks(1)).container("more", asks(1)).build();
    await admit(bench, web);
    assert.deepEqual([idsOf(bench, web, "app"), idsOf(bench, web, "more")], [["a"], ["b"]]);
    bench.close();
  });

  test("of nothing asks no plugin", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    const none = podOf("none", 0);
    await admit(bench, none);
    assert.deepEqual([plugin.calls, bench.plugins.pods.uids()], [["options"], []]);
    assert.deepEqual([...bench.allocator.podHints(none).keys()], []);
    bench.close();
  });

  test("tells what a pod waits for as long as it waits for it", async () => {
    const bench = new DeviceBench();
    const plugin = new ScriptedPlugin();
    plugin.preferred = ["c"];
    bench.sockets.set("s", plugin);
    await bench.register(GPU, "s");
    plugin.list({ a: {}, b: {}, c: {} });
    await bench.clock.advance(0);
    const answers: (() => void)[] = [];
    plugin.before = () => new Promise((resolve) => answers.push(resolve));
    const both = [admit(bench, podOf("one")), admit(bench, podOf("two"))];
    await bench.clock.advance(0);
    const [forAnother, forAllocate] = [
      `for device plugin ${GPU} to answer for another pod`,
      `for device plugin ${GPU} to answer Allocate`,
    ];
    assert.deepEqual(bench.openWaits, [forAnother, forAllocate]);
    answers.shift()?.();
    await bench.clock.advance(0);
    assert.deepEqual(bench.openWaits, [forAllocate]);
    answers.shift()?.();
    await Promise.all(both);
    assert.deepEqual(bench.openWaits, []);
    plugin.before = undefined;
    bench.waits.length = 0;
    await admit(bench, podOf("three"));
    assert.ok(!bench.waits.includes(forAnother));
    bench.close();
  });

  test("asks the plugin what it prefers, and takes it", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU);
    plugin.preferred = ["c", "zzz"];
    await bench.plugin(GPU, undefined, "x");
    const chooser = new ScriptedPlugin();
    chooser.preferred = ["c", "zzz"];
    bench.sockets.set("y", chooser);
    await bench.register(GPU, "y");
    chooser.list({ a: {}, b: {}, c: {} });
    await bench.clock.advance(0);
    const web = podOf("web", 2);
    await admit(bench, web);
    assert.deepEqual(chooser.calls, ["options", "prefer 2 of a,b,c with ", "allocate c,a"]);
    assert.deepEqual(bench.waits, [
      "for device plugin example.com/gpu to answer GetPreferredAllocation",
      "for device plugin example.com/gpu to answer Allocate",
    ]);
    bench.close();
  });

  test("takes what the plugin prefers, and the device that was reserved is free again while the plugin is asked", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU);
    plugin.preferred = ["b"];
    await bench.register(GPU, `${GPU}.sock`);
    plugin.list({ a: { nodes: [0] }, b: { nodes: [1] } });
    await bench.clock.advance(0);
    const free: unknown[] = [];
    plugin.prefer = () => {
      free.push([...bench.allocator.free(GPU)]);
      return Promise.resolve(["b"]);
    };
    plugin.before = () => Promise.resolve(void free.push([...bench.allocator.free(GPU)]));
    await admit(bench, podOf("web"));
    assert.deepEqual(free, [[[1, 1]], [[0, 1]]]);
    bench.close();
  });

  test("takes no device of one plugin for one of another by the same id", async () => {
    const bench = new DeviceBench();
    for (const resource of [GPU, "example.com/nic"]) await bench.plugin(resource, { "0": {} });
    const web = pod("web").container("app", asks(1)).container("proxy", asks(1, "example.com/nic")).build();
    await admit(bench, web);
    const held = (container: string) => [...bench.plugins.pods.of("uid-of-web", container).keys()];
    assert.deepEqual([held("app"), held("proxy")], [[GPU], ["example.com/nic"]]);
    bench.close();
  });

  test("does not ask a plugin what it prefers that does not offer to tell", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {}, b: {} });
    await admit(bench, podOf("web"));
    assert.deepEqual(plugin.calls, ["options", "allocate a"]);
    bench.close();
  });

  test("that fails leaves nothing allocated", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    const faults: readonly [RegExp, () => void][] = [
      [/^Error: no$/, () => plugin.faults.set("allocate", new Error("no"))],
      [
        /^Error: no containers return in allocation response of example.com\/gpu$/,
        () => {
          plugin.faults.clear();
          plugin.answer = undefined;
        },
      ],
      [
        /^Error: allocation response of example.com\/gpu has 3000\d\d bytes, more than 262144$/,
        () => {
          const envs = { A: "x".repeat(300_000) };
          plugin.answer = { envs, mounts: [], devices: [], annotations: {}, cdiDevices: [] };
        },
      ],
      [
        /^Error: no space left on device$/,
        () => {
          plugin.answer = { envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] };
          bench.full = new Error("no space left on device");
        },
      ],
    ];
    for (const [at, [why, fault]] of faults.entries()) {
      fault();
      await assert.rejects(admit(bench, podOf(`pod-${at}`)), why);
      assert.deepEqual(bench.plugins.pods.uids(), []);
    }
    bench.full = undefined;
    await admit(bench, podOf("last"));
    bench.close();
  });

  test("that cannot be given back on the disk is given back all the same, and told", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {} });
    await admit(bench, podOf("first"));
    bench.full = new Error("no space left on device");
    bench.allocator.release("uid-of-first");
    await bench.clock.advance(0);
    assert.deepEqual([bench.plugins.pods.uids(), bench.warnings], [[], ["Failed to write device checkpoint"]]);
    bench.full = undefined;
    await admit(bench, podOf("second"));
    bench.close();
  });

  test("that a plugin refuses is asked for again at once by the next pod", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    plugin.faults.set("allocate", new RuntimeError("Unknown", "the card is locked"));
    await assert.rejects(admit(bench, podOf("a")), /the card is locked/);
    plugin.faults.clear();
    await admit(bench, podOf("b"));
    bench.close();
  });

  test("of a plugin that does not answer fails, and the next ones at once, for a while", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    plugin.faults.set("allocate", timeout);
    await assert.rejects(admit(bench, podOf("a")), /device plugin example.com\/gpu did not answer Allocate$/);
    await assert.rejects(admit(bench, podOf("b")), /did not answer Allocate; it is asked again in 120 s/);
    assert.equal(plugin.calls.filter((call) => call === "allocate a").length, 1);
    plugin.faults.clear();
    await bench.clock.advance(120_000);
    await admit(bench, podOf("c"));
    bench.close();
  });

  test("of a plugin that does not tell what it prefers fails, and the next ones at once, for a while", async () => {
    const bench = new DeviceBench();
    const plugin = new ScriptedPlugin();
    plugin.preferred = [];
    bench.sockets.set("s", plugin);
    await bench.register(GPU, "s");
    plugin.list({ a: {}, b: {} });
    await bench.clock.advance(0);
    plugin.faults.set("prefer", timeout);
    await assert.rejects(admit(bench, podOf("a")), /GetPreferredAllocation rpc failed/);
    await assert.rejects(admit(bench, podOf("b")), /did not answer GetPreferredAllocation; it is asked again in 120 s/);
    assert.equal(plugin.calls.filter((call) => call.startsWith("prefer")).length, 1);
    plugin.faults.clear();
    await bench.clock.advance(120_000);
    await admit(bench, podOf("b"));
    bench.close();
  });

  test("that could not be written is written before its container starts", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {} });
    const web = podOf("web");
    const [app = { name: "" }] = web.spec.containers;
    bench.full = new Error("no space left on device");
    for (const _ of [1, 2])
      await assert.rejects(bench.allocator.allocateMissing(web, app, { signal }), /no space left/);
    bench.full = undefined;
    await bench.allocator.allocateMissing(web, app, { signal });
    const held = idsOf(bench, web);
    bench.restart();
    assert.deepEqual(idsOf(bench, web), held);
    bench.close();
  });

  test("that could not be written beside another that could is written before its container starts", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {} });
    const { file } = bench;
    const write = file.writeCheckpoint;
    const [web, other] = [podOf("web"), podOf("other")];
    const start = (of: Pod): Promise<void> => {
      const [app = { name: "" }] = of.spec.containers;
      return bench.allocator.allocateMissing(of, app, { signal });
    };
    let written: () => void = () => undefined;
    file.writeCheckpoint = (text) =>
      new Promise((resolve) => {
        written = () => resolve(write(text));
      });
    const first = start(web);
    await bench.clock.advance(0);
    file.writeCheckpoint = () => Promise.reject(new Error("no space left on device"));
    const second = start(other);
    await bench.clock.advance(0);
    written();
    await first;
    await assert.rejects(second, /no space left/);
    file.writeCheckpoint = write;
    await start(other);
    bench.restart();
    assert.equal(idsOf(bench, other).length, 1);
    bench.close();
  });

  test("that a starting container lacks, and does not get, keeps no device back", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    const web = podOf("web");
    const [app = { name: "" }] = web.spec.containers;
    plugin.faults.set("allocate", new Error("no"));
    await assert.rejects(bench.allocator.allocateMissing(web, app, { signal }), /^Error: no$/);
    assert.deepEqual([...bench.allocator.held()], []);
    plugin.faults.clear();
    await admit(bench, podOf("other"));
    bench.close();
  });

  test("is completed when a container starts that had only the first of its plugins", async () => {
    const bench = new DeviceBench();
    const gpus = await bench.plugin(GPU, { a: {} });
    const limits = { [GPU]: "1", "example.com/nic": "1" };
    const web = pod("web")
      .container("app", { resources: { limits, requests: limits } })
      .build();
    const [app = { name: "" }] = web.spec.containers;
    await admit(bench, web);
    await bench.plugin("example.com/nic", { x: {} });
    await bench.allocator.allocateMissing(web, app, { signal });
    assert.deepEqual([...bench.plugins.pods.of("uid-of-web", "app").keys()], [GPU, "example.com/nic"]);
    assert.deepEqual(gpus.calls, ["options", "allocate a"]);
    bench.close();
  });

  test("that a starting container lacks is made where its pod was aligned", async () => {
    const bench = new DeviceBench();
    const web = podOf("web");
    const [app = { name: "" }] = web.spec.containers;
    await bench.admit(web, { affinity: { numa: numaMask([1]), isPreferred: true } });
    await bench.plugin(GPU, { a: { nodes: [0] }, b: { nodes: [1] } });
    await bench.allocator.allocateMissing(web, app, { signal });
    assert.deepEqual([...bench.plugins.pods.idsOf("uid-of-web", GPU)], ["b"]);
    bench.allocator.release("uid-of-web");
    await bench.allocator.allocateMissing(web, app, { signal });
    assert.deepEqual([...bench.plugins.pods.idsOf("uid-of-web", GPU)], ["a"], "of a pod that is gone nothing is kept");
    bench.close();
  });

  test("that is on the disk already, or of nothing, needs no disk", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {} });
    const web = podOf("web");
    const [app = { name: "" }] = web.spec.containers;
    await admit(bench, web);
    bench.full = new Error("no space left on device");
    // Something that is not there yet: a save would write.
    await bench.plugin("example.com/nic", { x: {} });
    await bench.allocator.allocateMissing(web, app, { signal });
    await assert.rejects(admit(bench, pod("nic").container("app", asks(1, "example.com/nic")).build()));
    const plain = pod("plain").container("app").build();
    await admit(bench, plain);
    for (const container of plain.spec.containers) await bench.allocator.allocateMissing(plain, container, { signal });
    bench.close();
  });

  test("of a plugin that does not answer keeps its devices, and delays only pods that need the same plugin", async () => {
    const bench = new DeviceBench();
    const gpus = await bench.plugin(GPU, { a: {}, b: {} });
    await bench.plugin("example.com/nic", { x: {} });
    gpus.faults.set("allocate", "hang");
    const slow = new AbortController();
    const first = assert.rejects(bench.admit(podOf("slow"), { signal: slow.signal }), /aborted/);
    const second = bench.admit(podOf("next"));
    await bench.clock.advance(0);
    await bench.admit(pod("other").container("app", asks(1, "example.com/nic")).build());
    assert.deepEqual(
      bench.waits.filter((what) => !what.endsWith("GetPreferredAllocation")),
      [
        `for device plugin ${GPU} to answer for another pod`,
        `for device plugin ${GPU} to answer Allocate`,
        "for device plugin example.com/nic to answer Allocate",
      ],
    );
    await assert.rejects(admit(bench, podOf("third")), /Available: 0/);
    assert.deepEqual([idsOf(bench, podOf("slow")), idsOf(bench, podOf("next"))], [[], []]);
    gpus.faults.clear();
    slow.abort();
    await first;
    await second;
    assert.deepEqual(idsOf(bench, podOf("next")), ["b"]);
    await admit(bench, podOf("third"));
    bench.close();
  });

  test("that is released while the plugin is asked is nobody's, also if the plugin answers", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    let answer = (): void => undefined;
    plugin.before = () => new Promise((resolve) => (answer = resolve));
    const refused = assert.rejects(admit(bench, podOf("gone")), /devices of example.com\/gpu were released/);
    await bench.clock.advance(0);
    bench.allocator.release("uid-of-gone");
    answer();
    await refused;
    assert.deepEqual(bench.plugins.pods.uids(), []);
    bench.close();
  });

  test("that the plugin refuses to a container that lacks it is free again", async () => {
    const bench = new DeviceBench();
    const early = podOf("early");
    const [app = assert.fail()] = early.spec.containers;
    const plugin = await bench.plugin(GPU, { a: { nodes: [0] } });
    const free: unknown[] = [];
    plugin.before = () => {
      free.push([...bench.allocator.free(GPU)]);
      return Promise.reject(new Error("busy"));
    };
    await assert.rejects(bench.allocator.allocateMissing(early, app, { signal }), /busy/);
    free.push([...bench.allocator.free(GPU)]);
    assert.deepEqual(free, [[], [[0, 1]]]);
    bench.close();
  });

  test("that is released while the plugin is asked, and reserved anew, is had by the pod that comes back", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    let answer = (): void => undefined;
    plugin.before = () => new Promise((resolve) => (answer = resolve));
    const of = podOf("static");
    const [app = assert.fail()] = of.spec.containers;
    const { allocator } = bench;
    allocator.reserve(of, app, ANYWHERE);
    const first = assert.rejects(allocator.commit(of, { signal }), /devices of example.com\/gpu were released/);
    await bench.clock.advance(0);
    allocator.release("uid-of-static");
    allocator.reserve(of, app, ANYWHERE);
    const second = allocator.commit(of, { signal });
    plugin.before = undefined;
    answer();
    await first;
    await second;
    assert.deepEqual(idsOf(bench, of), ["a"]);
    bench.close();
  });

  test("that an agent did not survive has allocated nothing, whichever call it died in", async () => {
    for (const call of ["prefer", "allocate"]) {
      const bench = new DeviceBench();
      const plugin = await bench.plugin(GPU, { a: {}, b: {} });
      plugin.preferred = ["b"];
      await bench.register(GPU, `${GPU}.sock`);
      plugin.list({ a: {}, b: {} });
      await bench.clock.advance(0);
      plugin.faults.set(call, "hang");
      void admit(bench, podOf("web")).catch(() => undefined);
      await bench.clock.advance(0);
      bench.restart();
      assert.deepEqual(bench.plugins.pods.uids(), []);
      await bench.plugin(GPU, { a: {}, b: {} });
      await admit(bench, podOf("web", 2));
      bench.close();
    }
  });

  test("is on a new node if there was no checkpoint, not even a damaged one", async () => {
    const bench = new DeviceBench();
    const isNew = [bench.plugins.isNew];
    await bench.plugin(GPU, { a: {} });
    for (const checkpoint of [bench.checkpoint, "{", undefined]) {
      bench.checkpoint = checkpoint;
      bench.restart();
      isNew.push(bench.plugins.isNew);
    }
    assert.deepEqual(isNew, [true, false, false, true]);
    bench.close();
  });

  test("survives the agent as soon as the pod is admitted", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {} });
    await admit(bench, podOf("web"));
    const before = idsOf(bench, podOf("web"));
    bench.restart();
    assert.deepEqual(idsOf(bench, podOf("web")), before);
    bench.close();
  });

  test("is refused while the checkpoint cannot be read, which is not overwritten", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {} });
    await admit(bench, podOf("web"));
    const { checkpoint } = bench;
    bench.unreadable = new Error("EIO: i/o error");
    bench.restart();
    await bench.plugin(GPU, { a: {}, b: {} });
    await assert.rejects(admit(bench, podOf("other")), /device checkpoint is unreadable: EIO: i\/o error/);
    assert.equal(bench.checkpoint, checkpoint);
    assert.equal(bench.plugins.isNew, false);
    bench.unreadable = undefined;
    await admit(bench, podOf("other"));
    assert.deepEqual([idsOf(bench, podOf("web")), idsOf(bench, podOf("other"))], [["a"], ["b"]]);
    bench.close();
  });

  test("of a pod that went while the checkpoint could not be read is found, so that it is released", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {} });
    await admit(bench, podOf("gone"));
    bench.unreadable = new Error("EIO: i/o error");
    bench.restart();
    await bench.plugin(GPU, { a: {} });
    bench.allocator.release("uid-of-gone");
    assert.throws(() => bench.allocator.held(), /device checkpoint is unreadable: EIO: i\/o error/);
    bench.unreadable = undefined;
    assert.deepEqual([...bench.allocator.held()], ["uid-of-gone"]);
    bench.allocator.release("uid-of-gone");
    await admit(bench, podOf("next"));
    bench.close();
  });

  test("is refused at the start of a container while the checkpoint cannot be read: no device is owned twice", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {} });
    await admit(bench, podOf("web"));
    bench.unreadable = new Error("EIO: i/o error");
    bench.restart();
    const other = podOf("other");
    await admit(bench, other);
    const plugin = await bench.plugin(GPU, { a: {} });
    const [app = { name: "" }] = other.spec.containers;
    const start = (): Promise<void> => bench.allocator.allocateMissing(other, app, { signal });
    for (const _ of [1, 2]) await assert.rejects(start(), /device checkpoint is unreadable: EIO: i\/o error/);
    bench.unreadable = undefined;
    for (const _ of [1, 2]) await assert.rejects(start(), /requested number of devices unavailable/);
    assert.deepEqual([idsOf(bench, podOf("web")), idsOf(bench, other), plugin.calls], [["a"], [], ["options"]]);
    bench.close();
  });

  test("of a checkpoint that no agent wrote takes nothing of the node's own away", () => {
    const bench = new DeviceBench();
    const answer = ContainerAllocateResponse.fromPartial({});
    const entry = (uid: string, resource: string, node: number) => ({
      uid,
      container: "app",
      resource,
      devices: { byNode: new Map([[node, ["a"]]]), answer },
    });
    const entries = [entry("one", "cpu", 0), entry("two", GPU, 1.5), entry("three", GPU, 64), entry("four", GPU, -1)];
    bench.checkpoint = encodeCheckpoint({
      entries,
      registered: new Map([
        ["memory", []],
        ["pods", []],
      ]),
    });
    bench.restart();
    assert.deepEqual(bench.plugins.pods.uids(), ["four"]);
    assert.deepEqual([...bench.plugins.inventory.counts().keys()], [GPU]);
    assert.deepEqual([...bench.plugins.admissible().keys()], [GPU]);
    assert.equal(bench.warnings.length, 3);
    bench.close();
  });

  test("of a damaged checkpoint is lost with a warning, never the agent", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {} });
    await admit(bench, podOf("web"));
    bench.checkpoint = bench.checkpoint?.replace("uid-of-web", "uid-of-xxx");
    bench.restart();
    assert.deepEqual(bench.plugins.pods.uids(), []);
    await bench.plugin(GPU, { a: {} });
    await admit(bench, podOf("other"));
    bench.close();
  });

  test("ignores extended resources without a plugin, and those that a claim provides", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {} });
    const claimed: Pod = {
      ...podOf("claimed"),
      status: {
        extendedResourceClaimStatus: {
          resourceClaimName: "c",
          requestMappings: [{ containerName: "app", resourceName: GPU, requestName: "r" }],
        },
      },
    };
    await admit(bench, claimed);
    await admit(bench, pod("other").container("app", asks(3, "example.com/unknown")).build());
    assert.deepEqual(bench.plugins.pods.uids(), []);
    bench.close();
  });

  test("ignores claims for extended resources while their gate is off", async () => {
    const bench = new DeviceBench();
    bench.hasClaims = false;
    await bench.plugin(GPU, { a: {} });
    const requestMappings = [{ containerName: "app", resourceName: GPU, requestName: "r" }];
    const extendedResourceClaimStatus = { resourceClaimName: "c", requestMappings };
    const web: Pod = { ...podOf("web"), status: { extendedResourceClaimStatus } };
    await admit(bench, web);
    assert.deepEqual(idsOf(bench, web), ["a"]);
    bench.close();
  });

  test("is made of what a claim does not provide, container by container", async () => {
    const bench = new DeviceBench();
    for (const resource of [GPU, "example.com/nic"]) await bench.plugin(resource, { a: { nodes: [0] } });
    const limits = { [GPU]: "1", "example.com/nic": "1" };
    const requestMappings = [{ containerName: "app", resourceName: GPU, requestName: "r" }];
    const web: Pod = {
      ...pod("web")
        .container("app", { resources: { limits, requests: limits } })
        .container("proxy")
        .build(),
      status: { extendedResourceClaimStatus: { resourceClaimName: "c", requestMappings } },
    };
    assert.deepEqual([...bench.allocator.podHints(web).keys()], ["example.com/nic"]);
    await admit(bench, web);
    assert.deepEqual([...bench.plugins.pods.of("uid-of-web", "app").keys()], ["example.com/nic"]);
    bench.close();
  });

  test("that changed its amount is an error", async () => {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {} });
    await admit(bench, podOf("web", 1));
    const changed = podOf("web", 2);
    assert.throws(
      () => bench.allocator.reserve(changed, changed.spec.containers[0] as Container, ANYWHERE),
      /pod "uid-of-web" container "app" changed request for resource "example.com\/gpu" from 1 to 2/,
    );
    bench.close();
  });
});

describe("a pod of before a restart of the agent", () => {
  const NIC = "example.com/nic";
  const web = podOf("web");
  const WAITS = { waits: `for device plugin ${GPU} to register again` };

  /** A pod that has device a, and an agent that has just started. */
  async function restarted(of = web): Promise<DeviceBench> {
    const bench = new DeviceBench();
    await bench.plugin(GPU, { a: {}, b: {} });
    await bench.plugin(NIC, { x: {} });
    await admit(bench, of);
    await bench.clock.advance(1000);
    bench.restart();
    bench.changes.length = 0;
    return bench;
  }
  const woken = (bench: DeviceBench): number => bench.changes.filter((uids) => uids.includes("uid-of-web")).length;

  test("waits until its plugin has listed its devices, and is woken then", async () => {
    const bench = await restarted();
    assert.deepEqual(bench.allocator.readmit(web), WAITS);
    const plugin = await bench.plugin(GPU);
    assert.deepEqual(bench.allocator.readmit(web), WAITS, "it is registered, and has listed nothing");
    assert.equal(woken(bench), 0);
    plugin.list({ a: {}, b: {} });
    await bench.clock.advance(0);
    assert.equal(bench.allocator.readmit(web), undefined);
    assert.equal(woken(bench), 1);
    assert.deepEqual(plugin.calls, ["options"], "nothing is allocated again");
    bench.close();
  });

  const lists: readonly { name: string; listing: Listing; why: RegExp }[] = [
    {
      name: "unhealthy",
      listing: { a: { health: "Unhealthy" }, b: {} },
      why: /^Error: previously allocated devices are no/,
    },
    {
      name: "not listed",
      listing: { b: {} },
      why: /^Error: previously allocated devices are no longer healthy; cannot/,
    },
    {
      name: "unhealthy as all",
      listing: { a: { health: "Unhealthy" } },
      why: /^Error: no healthy devices present; cannot/,
    },
  ];
  for (const { name, listing, why } of lists) {
    test(`is woken and refused if its device is ${name}`, async () => {
      const bench = await restarted();
      await bench.plugin(GPU, listing);
      await bench.clock.advance(0);
      assert.equal(woken(bench), 1);
      assert.throws(() => bench.allocator.readmit(web), why);
      bench.close();
    });
  }

  const returns: Readonly<Record<string, (bench: DeviceBench) => Promise<void>>> = {
    "does not register": () => Promise.resolve(),
    "lists no device": async (bench: DeviceBench) => void (await bench.plugin(GPU, {})),
    "ends before it lists": async (bench: DeviceBench) => (await bench.plugin(GPU)).end(),
  };
  for (const [name, back] of Object.entries(returns)) {
    test(`waits 30 s for a plugin that ${name}, and is woken to be refused`, async () => {
      const bench = await restarted();
      await back(bench);
      await bench.clock.advance(29_000);
      assert.deepEqual(bench.allocator.readmit(web), WAITS);
      assert.equal(woken(bench), 0);
      await bench.clock.advance(1000);
      assert.equal(woken(bench), 1);
      assert.throws(
        () => bench.allocator.readmit(web),
        /^Error: no healthy devices present; cannot allocate unhealthy/,
      );
      bench.close();
    });
  }

  test("waits also for a plugin that had been gone for long", async () => {
    const bench = new DeviceBench();
    const plugin = await bench.plugin(GPU, { a: {} });
    await admit(bench, web);
    plugin.end();
    await bench.clock.advance(302_000);
    bench.restart();
    assert.deepEqual(bench.allocator.readmit(web), WAITS);
    await bench.plugin(GPU, { a: {} });
    assert.equal(bench.allocator.readmit(web), undefined);
    bench.close();
  });

  test("that was allocated nothing waits for nothing", async () => {
    const bench = await restarted();
    assert.equal(bench.allocator.readmit(podOf("other")), undefined);
    bench.close();
  });

  test("is refused for one of its resources while it waits for another", async () => {
    const both = { [GPU]: "1", [NIC]: "1" };
    const of = pod("web")
      .container("app", { resources: { limits: both, requests: both } })
      .build();
    const bench = await restarted(of);
    await bench.plugin(NIC, { y: {} });
    await bench.clock.advance(0);
    assert.throws(() => bench.allocator.readmit(of), /previously allocated devices are no longer healthy; .*nic$/);
    bench.close();
  });

  test("is refused if it asks for another number of devices", async () => {
    const bench = await restarted();
    await bench.plugin(GPU, { a: {}, b: {} });
    await bench.clock.advance(0);
    assert.throws(() => bench.allocator.readmit(podOf("web", 2)), /changed request for resource ".*" from 1 to 2$/);
    bench.close();
  });
});
