import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { countCpu } from "../../test/support/cpu-time.ts";
import { DeviceBench, ScriptedPlugin, timeout, unavailable } from "../../test/support/device-bench.ts";
import { pod } from "../../test/support/pods.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { ANYWHERE } from "../model/topology.ts";

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
    const refused = assert.rejects(bench.register("example.com/dead", "dead"), /failed to dial device plugin/);
    await bench.clock.advance(10_000);
    await refused;
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
    assert.ok(bench.changes.length < 50, `${bench.changes.length} changes`);
    bench.close();
  });

  test("with endless lists of very many devices are read now and then, also if they register for each anew", async () => {
    const bench = new DeviceBench();
    const many = (at: number) => Object.fromEntries(Array.from({ length: 10_000 }, (_, of) => [`d${at}-${of}`, {}]));
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
    await again();
    assert.deepEqual(idsOf(bench, web), [held]);
    assert.deepEqual(
      plugin.calls.filter((call) => call.startsWith("allocate")),
      [],
    );
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
    const faults = [
      () => plugin.faults.set("allocate", new Error("no")),
      () => {
        plugin.faults.clear();
        plugin.answer = undefined;
      },
      () => {
        plugin.answer = { envs: { A: "x".repeat(300_000) }, mounts: [], devices: [], annotations: {}, cdiDevices: [] };
      },
      () => {
        plugin.answer = { envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] };
        bench.full = new Error("no space left on device");
      },
    ];
    for (const [at, fault] of faults.entries()) {
      fault();
      await assert.rejects(admit(bench, podOf(`pod-${at}`)));
      assert.deepEqual(bench.plugins.pods.uids(), []);
    }
    bench.full = undefined;
    await admit(bench, podOf("last"));
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
    await assert.rejects(admit(bench, podOf("other")), /device checkpoint was unreadable until now/);
    await admit(bench, podOf("other"));
    assert.deepEqual([idsOf(bench, podOf("web")), idsOf(bench, podOf("other"))], [["a"], ["b"]]);
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
