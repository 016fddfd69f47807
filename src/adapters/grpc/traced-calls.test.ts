import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { CriServer } from "../../../test/support/cri-server.ts";
import { SystemClock } from "../../lib/clock.ts";
import { type EndedSpan, Tracer } from "../../lib/tracer.ts";
import { VersionResponse } from "../cri/generated/cri.ts";
import { contentService, runtimeService as rpc } from "../cri/methods.ts";
import { GrpcChannel } from "./channel.ts";
import { tracedCalls } from "./traced-calls.ts";

const never = { signal: new AbortController().signal };

test("a call is a span in that of its caller, and the runtime is given its context", async () => {
  const server = new CriServer();
  const seen: unknown[] = [];
  server.unary(rpc.version, (call, callback) => {
    seen.push(call.metadata.get("traceparent")[0], call.metadata.get("own")[0]);
    callback(null, VersionResponse.fromPartial({ runtimeName: "scripted" }));
  });
  server.unary(rpc.status, (_call, callback) => callback({ code: status.NOT_FOUND, details: "no such thing" }));
  await server.start();
  const ended: EndedSpan[] = [];
  const tracer = new Tracer(
    { clock: new SystemClock(), ended: (span) => void ended.push(span) },
    { samplingRatePerMillion: 1_000_000 },
  );
  const channel = new GrpcChannel(`unix://${server.socket}`, undefined, { traced: tracedCalls(tracer) });
  try {
    await tracer.run(tracer.begin("syncPod", { parent: undefined }), async () => {
      await channel.unary(rpc.version, {}, { ...never, metadata: { own: "kept" } });
      await assert.rejects(channel.unary(rpc.status, {}, never));
    });
    await assert.rejects(channel.unary(contentService.abort, {}, never));
  } finally {
    channel.close();
    await server.stop();
  }
  const [version, failed, sync] = ended;
  assert.equal(ended.length, 3, "only CRI has spans");
  assert.equal(version?.name, "runtime.v1.RuntimeService/Version");
  assert.deepEqual(seen, [`00-${version?.traceId}-${version?.spanId}-01`, "kept"]);
  assert.equal(version?.parentSpanId, sync?.spanId);
  assert.equal(version?.kind, "client");
  assert.deepEqual(version?.attributes, {
    "rpc.system": "grpc",
    "rpc.service": "runtime.v1.RuntimeService",
    "rpc.method": "Version",
    "rpc.grpc.status_code": 0,
  });
  assert.equal(failed?.attributes["rpc.grpc.status_code"], status.NOT_FOUND);
  assert.match(failed?.error ?? "", /no such thing/);
});
