import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiError, type KubeApi } from "../adapters/kubeapi/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { CSINode } from "../model/generated/types.ts";
import { CsiNodeKeeper, csiNodeOf } from "./csi-node.ts";

/** Runs a keeper for a node with the UID `u-1` on this object, and answers with what is there then. */
async function kept(before: CSINode | undefined): Promise<{ after: CSINode | undefined; writes: readonly string[] }> {
  let object = before;
  const writes: string[] = [];
  const set = (verb: string, to: CSINode | undefined) => {
    writes.push(verb);
    object = to;
    return Promise.resolve(to);
  };
  const api = {
    get: () => Promise.resolve(object),
    create: (_resource: unknown, { object: created }: { object: CSINode }) =>
      object === undefined ? set("create", created) : Promise.reject(new ApiError("AlreadyExists", "it is there")),
    update: (_resource: unknown, { object: updated }: { object: CSINode }) => set("update", updated),
    delete: () => set("delete", undefined),
  } as unknown as KubeApi;
  const stop = new AbortController();
  const nodeUid = ({ not }: { not: string | undefined }): Promise<string> =>
    not === undefined ? Promise.resolve("u-1") : new Promise<string>(() => undefined);
  await new Promise<void>((done) => {
    void new CsiNodeKeeper({ api, clock: new FakeClock(), log: silent, nodeUid, done }, "n").run(stop.signal);
  });
  stop.abort();
  return { after: object, writes };
}

describe("the CSINode of a node", () => {
  const drivers = [{ name: "d", nodeID: "x", topologyKeys: [] }];
  const wanted = csiNodeOf("n", "u-1");

  test("is created, with the kinds that were migrated to CSI", async () => {
    assert.deepEqual(await kept(undefined), { after: wanted, writes: ["create"] });
    assert.match(
      Object.values(wanted.metadata.annotations ?? {})[0] ?? "",
      /^kubernetes.io\/aws-ebs,.*vsphere-volume$/,
    );
  });

  test("stays as it is if it is the node's own", async () => {
    const own = { ...wanted, spec: { drivers } };
    assert.deepEqual(await kept(own), { after: own, writes: [] });
  });

  test("of an older agent gets the kinds that were migrated since, and keeps the rest", async () => {
    const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd", mine: "yes" };
    const old = { metadata: { ...wanted.metadata, annotations }, spec: { drivers } };
    const { after, writes } = await kept(old);
    assert.deepEqual(writes, ["update"]);
    assert.deepEqual(after?.metadata.annotations, { ...annotations, ...wanted.metadata.annotations });
    assert.deepEqual(after?.spec.drivers, drivers);
  });

  test("of an earlier node of this name is replaced", async () => {
    const other = { ...csiNodeOf("n", "u-0"), spec: { drivers } };
    assert.deepEqual(await kept(other), { after: wanted, writes: ["delete", "create"] });
  });
});
