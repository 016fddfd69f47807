import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiError, type KubeApi } from "../adapters/kubeapi/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { CSINode, Node } from "../model/generated/types.ts";
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
