import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiError, type KubeApi } from "../adapters/kubeapi/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { CSINode, CSINodeDriver, Node } from "../model/generated/types.ts";
import { CsiDriverReport, installPatch, uninstallPatch, withDriver, withoutDriver } from "./csi-drivers.ts";

const DRIVER = { name: "d", nodeId: "n-1", maxVolumes: 8, topology: { zone: "a", rack: "1" } };
const ANNOTATION = "csi.volume.kubernetes.io/nodeid";
const node = (metadata: Node["metadata"] = {}): Node => ({ metadata, spec: {} });

describe("the drivers of a CSINode", () => {
  const entry = { name: "d", nodeID: "n-1", topologyKeys: ["rack", "zone"], allocatable: { count: 8 } };
  test("get a new one with its topology keys and limit", () => {
    assert.deepEqual(withDriver([], DRIVER), [entry]);
    assert.deepEqual(withDriver([{ ...entry, name: "e" }], { ...DRIVER, maxVolumes: 0, topology: {} }), [
      { ...entry, name: "e" },
      { name: "d", nodeID: "n-1", topologyKeys: [] },
    ]);
  });

  test("are not written when nothing changed, and are when the limit did", () => {
    assert.equal(withDriver([{ ...entry, topologyKeys: ["zone", "rack"] }], DRIVER), undefined);
    assert.deepEqual(withDriver([entry], { ...DRIVER, maxVolumes: 2 ** 40 })?.[0]?.allocatable, { count: 2 ** 31 - 1 });
  });

  test("lose one that is gone", () => {
    assert.deepEqual(withoutDriver([entry], "d"), []);
    assert.equal(withoutDriver([entry], "e"), undefined);
  });
});

describe("the Node object", () => {
  test("gets the driver's id of the node and its topology", () => {
    assert.deepEqual(installPatch(node(), DRIVER), {
      annotations: { [ANNOTATION]: '{"d":"n-1"}' },
      labels: { zone: "a", rack: "1" },
    });
    const known = node({ annotations: { [ANNOTATION]: '{"d":"n-1"}' }, labels: { zone: "a", rack: "1" } });
    assert.equal(installPatch(known, DRIVER), undefined);
    assert.deepEqual(uninstallPatch(known, "d"), { annotations: { [ANNOTATION]: null } });
    assert.equal(uninstallPatch(known, "e"), undefined);
  });

  test("with another topology refuses the driver", () => {
    assert.throws(
      () => installPatch(node({ labels: { zone: "b" } }), DRIVER),
      /topology value collision: driver reported "zone":"a" but existing label is "zone":"b"/,
    );
  });
});

test("a conflict is tried again, and a removal that is overtaken by a new registration changes nothing", async () => {
  const clock = new FakeClock();
  let csiNode: CSINode = { metadata: { name: "n", resourceVersion: "1" }, spec: { drivers: [] } };
  let conflicts = 2;
  let writes = 0;
  const api = {
    get: (resource: { kind: string }) => Promise.resolve(resource.kind === "CSINode" ? csiNode : node()),
    patch: () => Promise.resolve(node()),
    update: (_resource: unknown, { object }: { object: CSINode }) => {
      if (conflicts-- > 0) return Promise.reject(new ApiError("Conflict", "changed meanwhile"));
      writes++;
      csiNode = object;
      return Promise.resolve(object);
    },
  } as unknown as KubeApi;
  const { signal } = new AbortController();
  const report = new CsiDriverReport({ api, clock, log: silent }, "n", signal);
  const installed = report.install(DRIVER, { signal });
  await clock.advance(1000);
  await installed;
  assert.deepEqual([csiNode.spec.drivers?.map(({ name }) => name), writes], [["d"], 1]);
  await report.update({ ...DRIVER, maxVolumes: 3 }, { signal });
  await report.update({ ...DRIVER, name: "gone" }, { signal });
  assert.deepEqual(
    csiNode.spec.drivers?.map(({ allocatable }) => allocatable?.count),
    [3],
  );
  await report.update(DRIVER, { signal });
  writes = 1;
  report.uninstall("d");
  await report.install(DRIVER, { signal });
  assert.deepEqual([csiNode.spec.drivers?.length, writes], [1, 1]);
  report.uninstall("d");
  await clock.advance(0);
  assert.deepEqual(csiNode.spec.drivers, []);
});

test("a removal that fails for ever keeps no other driver from being installed, and is logged once", async () => {
  const clock = new FakeClock();
  const warnings: string[] = [];
  let csiNode: CSINode = {
    metadata: { name: "n" },
    spec: { drivers: [{ name: "old", nodeID: "x", topologyKeys: [] }] },
  };
  const api = {
    get: (resource: { kind: string }) => Promise.resolve(resource.kind === "CSINode" ? csiNode : node()),
    patch: () => Promise.resolve(node()),
    update: (_resource: unknown, { object }: { object: CSINode }) => {
      const isRemoval = object.spec.drivers?.every(({ name }) => name !== "old") === true;
      if (isRemoval) return Promise.reject(new ApiError("Forbidden", "a webhook says no"));
      csiNode = object;
      return Promise.resolve(object);
    },
  } as unknown as KubeApi;
  const stop = new AbortController();
  const log = { warn: (_message: string, fields?: object) => void warnings.push(JSON.stringify(fields)) };
  const report = new CsiDriverReport({ api, clock, log }, "n", stop.signal);
  report.uninstall("old");
  await clock.advance(60_000);
  let isInstalled = false;
  void report.install(DRIVER, stop).then(() => (isInstalled = true));
  await clock.advance(0);
  assert.ok(isInstalled);
  assert.deepEqual(
    csiNode.spec.drivers?.map(({ name }) => name),
    ["old", "d"],
  );
  assert.equal(warnings.length, 1);
  stop.abort();
  await clock.advance(0);
});

describe("an entry of a driver, which the API server does not let be changed but for its limit", () => {
  const OLD = { name: "d", nodeID: "n-0", topologyKeys: ["rack", "zone"], allocatable: { count: 8 } };
  const OTHER = { name: "e", nodeID: "n", topologyKeys: [] };
  const site = (old: CSINodeDriver) => {
    const written: (readonly CSINodeDriver[])[] = [];
    let csiNode: CSINode = { metadata: { name: "n", resourceVersion: "1" }, spec: { drivers: [OTHER, old] } };
    const fixed = ({ nodeID, topologyKeys }: CSINodeDriver): string => JSON.stringify([nodeID, topologyKeys]);
    const api = {
      get: (resource: { kind: string }) => Promise.resolve(resource.kind === "CSINode" ? csiNode : node()),
      patch: () => Promise.resolve(node()),
      update: (_resource: unknown, { object }: { object: CSINode }) => {
        const { drivers } = object.spec;
        const before = new Map(csiNode.spec.drivers?.map((driver) => [driver.name, fixed(driver)]));
        if (drivers.some((driver) => (before.get(driver.name) ?? fixed(driver)) !== fixed(driver)))
          return Promise.reject(new ApiError("Invalid", "field is immutable"));
        if (object.metadata.resourceVersion !== csiNode.metadata.resourceVersion)
          return Promise.reject(new ApiError("Conflict", "changed meanwhile"));
        written.push(drivers);
        const resourceVersion = String(Number(csiNode.metadata.resourceVersion) + 1);
        csiNode = { ...object, metadata: { ...object.metadata, resourceVersion } };
        return Promise.resolve(csiNode);
      },
    } as unknown as KubeApi;
    const { signal } = new AbortController();
    const clock = new FakeClock();
    return { written, signal, clock, report: new CsiDriverReport({ api, clock, log: silent }, "n", signal) };
  };
  const now = { ...OLD, nodeID: "n-1" };

  for (const [name, old] of [
    ["id of the node", OLD],
    ["topology keys", { ...now, topologyKeys: ["zone"] }],
  ] as const) {
    test(`is removed and made anew if the driver's ${name} changed while the agent was away`, async () => {
      const { written, signal, report, clock } = site(old);
      const installed = report.install(DRIVER, { signal }).catch((error: unknown) => error);
      await clock.advance(60_000);
      assert.equal(await installed, undefined);
      assert.deepEqual(written, [[OTHER], [OTHER, now]]);
    });
  }

  test("keeps the order of its keys when its limit changes", async () => {
    const { written, signal, report, clock } = site({
      ...now,
      topologyKeys: ["zone", "rack"],
      allocatable: { count: 1 },
    });
    const installed = report.install(DRIVER, { signal }).catch((error: unknown) => error);
    await clock.advance(60_000);
    assert.equal(await installed, undefined);
    assert.deepEqual(written, [[OTHER, { ...now, topologyKeys: ["zone", "rack"] }]]);
  });
});

test("a driver that could not be installed is not published later", async () => {
  const clock = new FakeClock();
  let isAway = true;
  const written: string[] = [];
  const api = {
    get: (resource: { kind: string }) =>
      isAway
        ? Promise.reject(new ApiError("Unavailable", "connection refused"))
        : Promise.resolve(resource.kind === "CSINode" ? { metadata: {}, spec: { drivers: [] } } : node()),
    patch: () => Promise.resolve(node()),
    update: (_resource: unknown, { object }: { object: CSINode }) => {
      written.push(...(object.spec.drivers ?? []).map(({ name }) => name));
      return Promise.resolve(object);
    },
  } as unknown as KubeApi;
  const { signal } = new AbortController();
  const report = new CsiDriverReport({ api, clock, log: silent }, "n", signal);
  const installing = assert.rejects(report.install(DRIVER, { signal }), /connection refused/);
  await clock.advance(60_000);
  await installing;
  isAway = false;
  report.publishAgain();
  await clock.advance(60_000);
  assert.deepEqual(written, []);
});

describe("a CSINode that is gone", () => {
  const site = () => {
    const clock = new FakeClock();
    const objects: { node: Node; csiNode: CSINode | undefined } = { node: node({ uid: "u-1" }), csiNode: undefined };
    const api = {
      get: (resource: { kind: string }) => {
        if (resource.kind === "Node") return Promise.resolve(objects.node);
        if (objects.csiNode !== undefined) return Promise.resolve(objects.csiNode);
        return Promise.reject(new ApiError("NotFound", "no such CSINode"));
      },
      create: (_resource: unknown, { object }: { object: CSINode }) => {
        objects.csiNode = object;
        return Promise.resolve(object);
      },
      patch: (_resource: unknown, { body }: { body: Node }) => {
        objects.node = { ...objects.node, metadata: { ...objects.node.metadata, ...body.metadata } };
        return Promise.resolve(objects.node);
      },
      update: (_resource: unknown, { object }: { object: CSINode }) => {
        objects.csiNode = object;
        return Promise.resolve(object);
      },
    } as unknown as KubeApi;
    const { signal } = new AbortController();
    return { clock, objects, signal, report: new CsiDriverReport({ api, clock, log: silent }, "n", signal) };
  };
  const names = ({ csiNode }: { csiNode: CSINode | undefined }) => csiNode?.spec.drivers?.map(({ name }) => name);

  test("is created for a driver that is installed, and belongs to the node", async () => {
    const { objects, report, signal } = site();
    await report.install(DRIVER, { signal });
    assert.deepEqual(names(objects), ["d"]);
    assert.equal(objects.csiNode?.metadata.ownerReferences?.[0]?.uid, "u-1");
  });

  test("is nothing to remove a driver from, and is not created for that", async () => {
    const { clock, objects, report } = site();
    objects.node = node({ annotations: { [ANNOTATION]: '{"d":"n-1"}' } });
    report.uninstall("d");
    await clock.advance(60_000);
    assert.equal(objects.csiNode, undefined);
    assert.deepEqual(objects.node.metadata.annotations, { [ANNOTATION]: null });
  });

  test("gets its drivers again when the node was recreated, as they were reported last", async () => {
    const { clock, objects, report, signal } = site();
    for (const name of ["d", "e", "gone"]) await report.install({ ...DRIVER, name }, { signal });
    await report.update({ ...DRIVER, maxVolumes: 3 }, { signal });
    report.uninstall("gone");
    await clock.advance(0);
    objects.node = node({ uid: "u-2" });
    objects.csiNode = { metadata: { name: "n" }, spec: { drivers: [] } };
    report.publishAgain();
    await clock.advance(0);
    assert.deepEqual(names(objects), ["d", "e"]);
    assert.equal(objects.csiNode?.spec.drivers?.[0]?.allocatable?.count, 3);
    assert.deepEqual(objects.node.metadata.labels, DRIVER.topology);
  });
});
