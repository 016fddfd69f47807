import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { CriServer } from "../../../test/support/cri-server.ts";
import { AbortScope } from "../../lib/abort.ts";
import { PluginInfo, RegistrationStatusResponse } from "./generated/registration.ts";
import { RegistrationClient, registrationService as rpc } from "./registration-client.ts";

const never = { signal: new AbortController().signal };

describe("registration client", { timeout: 20_000 }, () => {
  let server: CriServer;
  let client: RegistrationClient;
  beforeEach(() => {
    server = new CriServer();
    client = new RegistrationClient(server.socket);
  });
  afterEach(async () => {
    client.close();
    await server.stop();
  });

  test("asks a plugin and tells it the outcome", async () => {
    const heard: unknown[] = [];
    const info = {
      type: "DRAPlugin",
      name: "gpu.example.com",
      endpoint: "/d.sock",
      supportedVersions: ["v1.DRAPlugin"],
    };
    await server
      .unary(rpc.getInfo, (_call, callback) => callback(null, PluginInfo.fromPartial(info)))
      .unary(rpc.notifyRegistrationStatus, (call, callback) => {
        heard.push(call.request);
        callback(null, RegistrationStatusResponse.fromPartial({}));
      })
      .start();
    const { supportedVersions: versions, ...rest } = info;
    // As the registry calls it: the signal of a scope is a getter, which a spread would lose.
    const scope = new AbortScope([never.signal]);
    assert.deepEqual(await client.info(scope), { ...rest, versions });
    await client.notify("", scope);
    await client.notify("not you", never);
    assert.deepEqual(heard, [
      { pluginRegistered: true, error: "" },
      { pluginRegistered: false, error: "not you" },
    ]);
  });

  test("bounds what a plugin says", async () => {
    const long = "x".repeat(5000);
    const info = { type: long, name: long, endpoint: long, supportedVersions: Array.from({ length: 500 }, () => "v1") };
    await server.unary(rpc.getInfo, (_call, callback) => callback(null, PluginInfo.fromPartial(info))).start();
    const answer = await client.info(never);
    assert.ok([answer.type, answer.name, answer.endpoint].every((text) => Buffer.byteLength(text) <= 1024));
    assert.equal(answer.versions.length, 64);
  });

  test("an introduction of a megabyte is refused", async () => {
    const info = PluginInfo.fromPartial({ name: "x".repeat(1024 * 1024) });
    await server.unary(rpc.getInfo, (_call, callback) => callback(null, info)).start();
    await assert.rejects(client.info(never), { code: "ResourceExhausted" });
  });

  test("nobody listens: a coded error at once", async () => {
    await assert.rejects(client.info(never), { code: "Unavailable" });
  });
});
