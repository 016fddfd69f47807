import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { CriServer } from "../../../test/support/cri-server.ts";
import { AbortScope } from "../../lib/abort.ts";
import { DraClient, draHealthService, draServices } from "./dra-client.ts";
import { type Device, NodePrepareResourcesResponse, NodeUnprepareResourcesResponse } from "./generated/dra.ts";
import { HealthStatus, NodeWatchResourcesResponse } from "./generated/dra-health.ts";

const never = { signal: new AbortController().signal };
const claim = { uid: "u", name: "gpu", namespace: "default" };

describe("DRA client", { timeout: 20_000 }, () => {
  let server: CriServer;
  let client: DraClient;
  const connect = (service: "v1.DRAPlugin" | "v1beta1.DRAPlugin" = "v1.DRAPlugin"): DraClient =>
    new DraClient({ driver: "gpu.example.com", endpoint: server.socket, service });
  const answer = (response: Parameters<typeof NodePrepareResourcesResponse.fromPartial>[0]): Promise<CriServer> =>
    server
      .unary(draServices["v1.DRAPlugin"].prepare, (_call, callback) =>
        callback(null, NodePrepareResourcesResponse.fromPartial(response)),
      )
      .start();
  beforeEach(() => {
    server = new CriServer();
    client = connect();
  });
  afterEach(async () => {
    client.close();
    await server.stop();
  });

  for (const service of ["v1.DRAPlugin", "v1beta1.DRAPlugin"] as const) {
    test(`prepares and unprepares by ${service}`, async () => {
      client.close();
      client = connect(service);
      const asked: unknown[] = [];
      const device = { requestNames: ["r"], poolName: "p", deviceName: "d", cdiDeviceIds: ["example.com/gpu=0"] };
      await server
        .unary(draServices[service].prepare, (call, callback) => {
          asked.push(call.request.claims);
          callback(null, NodePrepareResourcesResponse.fromPartial({ claims: { u: { devices: [device] } } }));
        })
        .unary(draServices[service].unprepare, (_call, callback) =>
          callback(null, NodeUnprepareResourcesResponse.fromPartial({ claims: { u: { error: "busy" } } })),
        )
        .start();
      const scope = new AbortScope([never.signal]);
      const prepared = await client.prepare([claim], scope);
      const [found] = prepared.get("u")?.devices ?? [];
      assert.deepEqual(asked, [[claim]]);
      assert.deepEqual(found, {
        driver: "gpu.example.com",
        pool: "p",
        device: "d",
        requests: ["r"],
        cdiDevices: ["example.com/gpu=0"],
      });
      assert.deepEqual(await client.unprepare([claim], scope), new Map([["u", "busy"]]));
    });
  }

  test("a share id is passed on", async () => {
    await answer({ claims: { u: { devices: [{ poolName: "p", deviceName: "d", shareId: "s" }] } } });
    assert.equal((await client.prepare([claim], never)).get("u")?.devices[0]?.shareId, "s");
  });

  const names = (count: number, length: number): string[] => Array.from({ length: count }, () => "x".repeat(length));
  const TOO_LONG = "names that are too long or too many";
  const CONTROL = "names with control characters";
  const refused: readonly (readonly [string, readonly Partial<Device>[], string])[] = [
    ["too many devices", Array.from({ length: 1025 }, () => ({ deviceName: "d" })), "1025 devices"],
    ["a name that is too long", [{ deviceName: "x".repeat(1025) }], TOO_LONG],
    ["too many CDI devices", [{ cdiDeviceIds: names(257, 1) }], TOO_LONG],
    ["a CDI device that is too long", [{ cdiDeviceIds: names(1, 1025) }], TOO_LONG],
    [
      "more than 64 KiB of names",
      [{ cdiDeviceIds: names(64, 1022) }, {}],
      "65548 bytes of names, more than 65536", // 64 names of a KiB, and six empty ones of two bytes
    ],
    ["a pool with a control character", [{ poolName: "a\u0000b" }], CONTROL],
    ["a device with a control character", [{ deviceName: "a\u001bb" }], CONTROL],
    ["a share id with a control character", [{ shareId: "\u007f" }], CONTROL],
    ["a request with a control character", [{ requestNames: ["a", "b\n"] }], CONTROL],
    ["a CDI device with a control character", [{ cdiDeviceIds: ["a", "\u0085"] }], CONTROL],
  ];
  for (const [what, devices, problem] of refused) {
    test(`${what} is an error of that claim, which names the driver`, async () => {
      await answer({ claims: { u: { devices: [...devices] }, v: {} } });
      const prepared = await client.prepare([claim], never);
      assert.equal(prepared.get("u")?.error, `driver gpu.example.com returned ${problem}`);
      assert.equal(prepared.get("v")?.error, "");
    });
  }

  const large: readonly (readonly [string, number, Partial<Device>])[] = [
    ["32 devices with the longest names and 16 CDI devices each", 32, { cdiDeviceIds: names(16, 96) }],
    ["128 devices with 4 CDI devices each", 128, { poolName: "p".repeat(64), cdiDeviceIds: names(4, 80) }],
  ];
  for (const [what, count, rest] of large) {
    test(`a claim of ${what} is prepared`, async () => {
      const device = { poolName: "p".repeat(253), deviceName: "d".repeat(63), requestNames: ["r/".padEnd(40, "s")] };
      await answer({ claims: { u: { devices: Array.from({ length: count }, () => ({ ...device, ...rest })) } } });
      const prepared = (await client.prepare([claim], never)).get("u");
      assert.deepEqual([prepared?.error, prepared?.devices.length], ["", count]);
    });
  }

  test("an answer of more than 4 MiB is refused, and the words of an error are bounded", async () => {
    await answer({ claims: { u: { error: "x".repeat(1024 * 1024) } } });
    const prepared = await client.prepare([claim], never);
    assert.ok(Buffer.byteLength(prepared.get("u")?.error ?? "") <= 4096);
    await server.stop();
    client.close();
    server = new CriServer();
    client = connect();
    await answer({ claims: { u: { error: "x".repeat(5 * 1024 * 1024) } } });
    await assert.rejects(client.prepare([claim], never), { code: "ResourceExhausted" });
  });

  test("an answer of hundreds of thousands of fields is refused before they take memory", async () => {
    const requestNames = Array.from({ length: 400_000 }, () => "");
    await answer({ claims: { u: { devices: [{ requestNames }] } } });
    await assert.rejects(client.prepare([claim], never), /more than 300000 fields/);
  });

  test("health is passed on until the driver ends the stream, of too many devices not; without the service it is not implemented", async () => {
    const report = {
      device: { poolName: "p", deviceName: "d" },
      health: HealthStatus.UNHEALTHY,
      healthCheckTimeoutSeconds: 5n,
      message: "x".repeat(2000),
    };
    await server
      .stream(draHealthService.watch, (call) => {
        call.write(NodeWatchResourcesResponse.fromPartial({ devices: [report, {}] }));
        call.write(NodeWatchResourcesResponse.fromPartial({ devices: Array.from({ length: 400_000 }, () => ({})) }));
        call.end();
      })
      .start();
    const heard = [];
    for await (const reports of client.watchHealth(never)) {
      if (heard.length === 0) heard.push(...reports.read());
      else assert.throws(() => reports.read(), /more than 300000 fields/);
    }
    const [first, second] = heard;
    assert.deepEqual([first?.pool, first?.device, first?.health, first?.validMs], ["p", "d", "Unhealthy", 5000]);
    assert.deepEqual([first?.message.length, first?.message.endsWith("...")], [1024, true]);
    assert.deepEqual(second, { pool: "", device: "", health: "Unknown", validMs: undefined, message: "" });
    await server.stop();
    client.close();
    server = new CriServer();
    client = connect();
    await answer({});
    await assert.rejects(client.watchHealth(never).next(), { code: "Unimplemented" });
  });

  test("each call with one answer ends with its status code, a health stream is not counted", async () => {
    const ended: unknown[] = [];
    client.close();
    client = new DraClient({
      driver: "gpu.example.com",
      endpoint: server.socket,
      service: "v1.DRAPlugin",
      onCall: ({ path, error }) => ended.push([path.split("/").at(-1), error ?? "OK"]),
    });
    const { prepare, unprepare } = draServices["v1.DRAPlugin"];
    let began: () => void = () => undefined;
    await server
      .unary(prepare, () => began())
      .unary(unprepare, (_call, callback) => callback({ code: 13, details: "no disk" }))
      .stream(draHealthService.watch, (call) => call.end())
      .start();
    for await (const _ of client.watchHealth(never)) assert.fail("no report was sent");
    await assert.rejects(client.unprepare([claim], never));
    const scope = new AbortScope([never.signal]);
    began = () => scope.abort();
    await assert.rejects(client.prepare([claim], scope));
    await server.kill();
    await assert.rejects(client.prepare([claim], never));
    assert.deepEqual(ended, [
      ["NodeUnprepareResources", "Internal"],
      ["NodePrepareResources", "Canceled"],
      ["NodePrepareResources", "Unavailable"],
    ]);
  });

  test("the connection is established without a call, and its loss and return are told", async () => {
    const states: boolean[] = [];
    let changed: () => void = () => undefined;
    client.watchConnection((isConnected) => {
      states.push(isConnected);
      changed();
    });
    const until = async (isConnected: boolean): Promise<void> => {
      while (states.at(-1) !== isConnected) await new Promise<void>((resolve) => (changed = resolve));
    };
    await answer({});
    await until(true);
    await server.kill();
    await until(false);
    await server.start();
    await until(true);
  });
});
