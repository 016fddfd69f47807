import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { CriServer } from "../../../test/support/cri-server.ts";
import { AbortScope } from "../../lib/abort.ts";
import { DraClient, draHealthService, draServices } from "./dra-client.ts";
import { NodePrepareResourcesResponse, NodeUnprepareResourcesResponse } from "./generated/dra.ts";
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
  for (const [what, devices] of [
    ["too many devices", Array.from({ length: 1025 }, () => ({ deviceName: "d" }))],
    ["a name that is too long", [{ deviceName: "x".repeat(1025) }]],
    ["too many CDI devices", [{ cdiDeviceIds: names(257, 1) }]],
    ["a CDI device that is too long", [{ cdiDeviceIds: names(1, 1025) }]],
  ] as const) {
    test(`${what} is an error of that claim`, async () => {
      await answer({ claims: { u: { devices: [...devices] }, v: {} } });
      const prepared = await client.prepare([claim], never);
      assert.match(prepared.get("u")?.error ?? "", /driver returned/);
      assert.equal(prepared.get("v")?.error, "");
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

  test("health is passed on until the driver ends the stream; without the service it is not implemented", async () => {
    const report = {
      device: { poolName: "p", deviceName: "d" },
      health: HealthStatus.UNHEALTHY,
      healthCheckTimeoutSeconds: 5n,
      message: "x".repeat(2000),
    };
    await server
      .stream(draHealthService.watch, (call) => {
        call.write(NodeWatchResourcesResponse.fromPartial({ devices: [report, {}] }));
        call.end();
      })
      .start();
    const heard = [];
    for await (const reports of client.watchHealth(never)) heard.push(...reports);
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
