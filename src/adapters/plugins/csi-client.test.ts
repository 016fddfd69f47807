import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { CriServer } from "../../../test/support/cri-server.ts";
import { type CsiCall, CsiClient, csiNodeService } from "./csi-client.ts";
import { CsiError } from "./csi-error.ts";
import * as csi from "./generated/csi.ts";

const never = { signal: new AbortController().signal };
const use = { mode: "SINGLE_NODE_WRITER", filesystem: { type: "ext4", options: ["noatime"] } } as const;

describe("CSI client", { timeout: 20_000 }, () => {
  let server: CriServer;
  let client: CsiClient;
  let calls: CsiCall[];
  beforeEach(() => {
    server = new CriServer();
    calls = [];
    client = new CsiClient(server.socket, (call) => void calls.push(call));
  });
  afterEach(async () => {
    client.close();
    await server.stop();
  });

  test("a refusal arrives with its code and the driver's words, and is counted so", async () => {
    await server
      .unary(csiNodeService.unpublish, (_call, callback) => callback({ code: 10, details: "pending" }))
      .start();
    const refused = client.unpublish({ volumeId: "v", targetPath: "/t" }, { ...never, isMigrated: true });
    await assert.rejects(refused, (error) => {
      assert.ok(error instanceof CsiError);
      assert.deepEqual([error.code, error.details, error.isFinal], ["Aborted", "pending", false]);
      return true;
    });
    const [call] = calls;
    assert.deepEqual(
      [call?.method, call?.code, call?.isMigrated],
      ["/csi.v1.Node/NodeUnpublishVolume", "Aborted", true],
    );
  });

  test("a driver that is not there is unavailable, which is not final", async () => {
    const refused = client.unpublish({ volumeId: "v", targetPath: "/t" }, never);
    await assert.rejects(refused, (error) => error instanceof CsiError && error.code === "Unavailable");
    assert.equal(calls[0]?.code, "Unavailable");
  });

  test("growing a volume names its paths, its size and its use", async () => {
    let asked: unknown;
    await server
      .unary(csiNodeService.expand, ({ request }, callback) => {
        asked = request;
        callback(null, csi.NodeExpandVolumeResponse.fromPartial({ capacityBytes: 4096n }));
      })
      .start();
    const paths = { volumePath: "/p", stagingPath: "/s" };
    const size = await client.expand({ volumeId: "v", ...paths, bytes: 4000, use, secrets: { key: "x" } }, never);
    assert.equal(size, 4096);
    assert.deepEqual(asked, {
      volumeId: "v",
      volumePath: "/p",
      stagingTargetPath: "/s",
      capacityRange: { requiredBytes: 4000n, limitBytes: 0n },
      volumeCapability: {
        block: undefined,
        mount: { fsType: "ext4", mountFlags: ["noatime"], volumeMountGroup: "" },
        accessMode: { mode: 1 },
      },
      secrets: { key: "x" },
    });
  });

  test("statistics are what the driver counts: bytes, inodes, health", async () => {
    const usage = [
      { available: 1n, total: 3n, used: 2n, unit: 1 as const },
      { available: 10n, total: 30n, used: 20n, unit: 2 as const },
    ];
    const answers = [
      csi.NodeGetVolumeStatsResponse.fromPartial({ usage }),
      csi.NodeGetVolumeStatsResponse.fromPartial({ volumeCondition: { abnormal: true, message: "worn out" } }),
    ];
    await server.unary(csiNodeService.stats, (_call, callback) => callback(null, answers.shift() ?? null)).start();
    const request = { volumeId: "v", volumePath: "/p" };
    assert.deepEqual(await client.stats(request, never), {
      bytes: { available: 1, total: 3, used: 2 },
      inodes: { available: 10, total: 30, used: 20 },
      condition: undefined,
    });
    const { bytes, condition } = await client.stats(request, never);
    assert.deepEqual([bytes, condition], [undefined, { isAbnormal: true, message: "worn out" }]);
  });

  test("an answer of tens of thousands of fields fails the call before they take memory", async () => {
    const answer = csi.NodeGetVolumeStatsResponse.fromPartial({ usage: Array.from({ length: 20_000 }, () => ({})) });
    await server.unary(csiNodeService.stats, (_call, callback) => callback(null, answer)).start();
    await assert.rejects(client.stats({ volumeId: "v", volumePath: "/p" }, never), /more than 10000 fields/);
    assert.equal(calls[0]?.code, "Internal");
  });

  for (const [name, call, want] of [
    ["a volume", () => client.unstage({ volumeId: "", stagingPath: "/s" }, never), /^Error: missing volume id$/],
    ["a path", () => client.unpublish({ volumeId: "v", targetPath: "" }, never), /^Error: missing target path$/],
  ] as const) {
    test(`a call without ${name} is not made`, async () => {
      await assert.rejects(call(), want);
      assert.deepEqual(calls, []);
    });
  }
});
