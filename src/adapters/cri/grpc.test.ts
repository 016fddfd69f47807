import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { status } from "@grpc/grpc-js";
import { CriServer } from "../../../test/support/cri-server.ts";
import { GrpcChannel } from "../grpc/channel.ts";
import { RuntimeError, type RuntimeErrorCode } from "../runtime/port.ts";
import { ContainerEventResponse, ListImagesResponse, VersionResponse } from "./generated/cri.ts";
import { imageService, runtimeService as rpc } from "./methods.ts";

const never = { signal: new AbortController().signal };
const withCode = (code: RuntimeErrorCode) => (error: unknown) => error instanceof RuntimeError && error.code === code;
const answer = VersionResponse.fromPartial({ runtimeName: "scripted" });

describe("grpc channel", { timeout: 20_000 }, () => {
  let server: CriServer;
  let channel: GrpcChannel;
  beforeEach(() => {
    server = new CriServer();
    channel = new GrpcChannel(`unix://${server.socket}`);
  });
  afterEach(async () => {
    channel.close();
    await server.stop();
  });

  test("without a socket a call fails at once, and works soon after somebody listens", async () => {
    server.unary(rpc.version, (_call, callback) => callback(null, answer));
    const began = performance.now();
    for (let round = 0; round < 3; round++) {
      await assert.rejects(channel.unary(rpc.version, {}, { ...never, timeoutMs: 5000 }), withCode("Unavailable"));
    }
    assert.ok(performance.now() - began < 10_000);
    await server.start();
    const back = performance.now();
    for (;;) {
      const name = await channel.unary(rpc.version, {}, { ...never, timeoutMs: 5000 }).then(
        ({ runtimeName }) => runtimeName,
        () => undefined,
      );
      if (name === "scripted") break;
      assert.ok(performance.now() - back < 10_000);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  });

  test("a call that outlives its deadline is a Timeout", async () => {
    await server.unary(rpc.version, () => undefined).start();
    await assert.rejects(channel.unary(rpc.version, {}, { ...never, timeoutMs: 50 }), withCode("Timeout"));
  });

  test("an abort cancels the call at the server and rejects with the signal's reason", async () => {
    const controller = new AbortController();
    const reason = new Error("not any more");
    let cancelled: () => void = () => undefined;
    const seen = new Promise<void>((resolve) => (cancelled = resolve));
    await server
      .unary(rpc.version, (call) => {
        call.on("cancelled", cancelled);
        controller.abort(reason);
      })
      .start();
    const call = channel.unary(rpc.version, {}, { signal: controller.signal, timeoutMs: 5000 });
    await assert.rejects(call, (error) => error === reason);
    await seen;
  });

  test("a cancellation that we did not ask for is Unavailable", async () => {
    await server.unary(rpc.version, (_call, callback) => callback({ code: status.CANCELLED, details: "no" })).start();
    await assert.rejects(channel.unary(rpc.version, {}, { ...never, timeoutMs: 5000 }), withCode("Unavailable"));
  });

  test("a server that dies under a call makes it Unavailable", async () => {
    await server.unary(rpc.version, () => void server.kill()).start();
    await assert.rejects(channel.unary(rpc.version, {}, { ...never, timeoutMs: 5000 }), withCode("Unavailable"));
  });

  test("leaving a stream early cancels it at the server", async () => {
    let cancelled: () => void = () => undefined;
    const seen = new Promise<void>((resolve) => (cancelled = resolve));
    await server
      .stream(rpc.getContainerEvents, (call) => {
        call.on("cancelled", cancelled);
        call.write(ContainerEventResponse.fromPartial({ containerId: "first" }));
      })
      .start();
    for await (const { containerId } of channel.stream(rpc.getContainerEvents, {}, never)) {
      assert.equal(containerId, "first");
      break;
    }
    await seen;
  });

  test("an abort ends a stream with the signal's reason", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    await server.stream(rpc.getContainerEvents, () => controller.abort(reason)).start();
    const stream = channel.stream(rpc.getContainerEvents, {}, { signal: controller.signal });
    await assert.rejects(stream.next(), (error) => error === reason);
  });

  test("an optional method that is refused is not asked for again", async () => {
    let calls = 0;
    await server
      .unary(rpc.runtimeConfig, (_call, callback) => {
        calls++;
        callback({ code: status.UNIMPLEMENTED, details: "unknown method" });
      })
      .start();
    const options = { ...never, timeoutMs: 5000, optional: true };
    await assert.rejects(channel.unary(rpc.runtimeConfig, {}, options), withCode("Unimplemented"));
    await assert.rejects(channel.unary(rpc.runtimeConfig, {}, options), withCode("Unimplemented"));
    assert.equal(calls, 1);
  });

  test("an answer of 10 MiB arrives whole", async () => {
    const images = [{ id: "x".repeat(10 << 20), size: 123_456_789_012n }];
    await server
      .unary(imageService.listImages, (_call, callback) => callback(null, ListImagesResponse.fromPartial({ images })))
      .start();
    const answer = await channel.unary(imageService.listImages, {}, { ...never, timeoutMs: 5000 });
    assert.equal(answer.images[0]?.id.length, 10 << 20);
    assert.equal(answer.images[0]?.size, 123_456_789_012n);
  });
});
