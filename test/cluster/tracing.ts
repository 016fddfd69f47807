/** Traces of a real pod's start, as a receiver of OpenTelemetry's own module reads them. */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { Program } from "../integration/support/program.ts";
import { requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";

requireMachine();

const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "kubelet-ts");
const RECEIVER = join(process.env["OTLP_RECEIVER_BIN_DIR"] || join(cache, "otlp-receiver-1.9.0"), "otlp-receiver");
if (!existsSync(RECEIVER)) {
  process.stdout.write(`no ${RECEIVER} (node scripts/build-otlp-receiver.mjs)\n`);
  process.exit(77);
}

/** A span as protobuf's JSON has it: ids in base64, 64-bit numbers as text. */
interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly Attribute[];
  readonly status?: { readonly code?: string; readonly message?: string };
}
interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}
interface Received {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly ReceivedSpan[] }[];
  }[];
}

const attribute = ({ attributes = [] }: Pick<ReceivedSpan, "attributes">, key: string): string | undefined =>
  attributes.find((one) => one.key === key)?.value.stringValue;

describe("traces", () => {
  const site = new Site();
  let receiver: Program;

  const requests = (): Received[] =>
    receiver.stdout
      .split("\n")
      // The last one has no end yet.
      .slice(0, -1)
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Received);
  const spans = (): ReceivedSpan[] =>
    requests().flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    );

  before(async () => {
    receiver = new Program([RECEIVER]);
    await receiver.says(/^127\.0\.0\.1:\d+\n/);
    const endpoint = receiver.stdout.split("\n")[0] ?? "";
    const config = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    const file = join(site.dir, "config.json");
    writeFileSync(file, JSON.stringify({ ...config, tracing: { endpoint, samplingRatePerMillion: 1_000_000 } }));
    await site.up([`--config=${file}`]);
    site.write(manifest("web", { containers: [shell("main", forever("echo up"))] }));
    await site.running("web");
    await until("the start of the pod was exported", () => spans().some(({ name }) => name === "startPod"), {
      limitMs: 60_000,
    });
  });
  after(async () => {
    await site.close();
    await receiver.end("SIGTERM");
  });

  it("the start of a pod is one trace down to the calls to the runtime", () => {
    const all = spans();
    const start = all.find(({ name }) => name === "startPod");
    assert.ok(start);
    assert.equal(attribute(start, "k8s.pod"), "default/web-here");
    const inTrace = all.filter(({ traceId }) => traceId === start.traceId);
    const parentOf = (span: ReceivedSpan | undefined): ReceivedSpan | undefined =>
      inTrace.find(({ spanId }) => spanId === span?.parentSpanId);
    const calls = { RunPodSandbox: "sandbox", CreateContainer: "create", StartContainer: "start" };
    for (const [method, step] of Object.entries(calls)) {
      const call = inTrace.find(({ name }) => name === `runtime.v1.RuntimeService/${method}`);
      assert.equal(call?.kind, "SPAN_KIND_CLIENT", method);
      assert.equal(parentOf(call)?.name, step);
      assert.equal(parentOf(parentOf(call))?.name, "syncPod");
      assert.equal(parentOf(parentOf(parentOf(call)))?.spanId, start.spanId);
    }
    for (const { startTimeUnixNano, endTimeUnixNano, name } of inTrace) {
      assert.ok(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano), name);
      assert.ok(BigInt(startTimeUnixNano) >= BigInt(start.startTimeUnixNano), name);
      assert.ok(Math.abs(Number(BigInt(startTimeUnixNano) / 1_000_000n) - Date.now()) < 120_000, name);
    }
  });

  it("the resource names the kubelet and its node", () => {
    const resource = requests()[0]?.resourceSpans[0]?.resource;
    assert.equal(attribute(resource ?? {}, "service.name"), "kubelet");
    assert.equal(attribute(resource ?? {}, "host.name"), "here");
  });

  it("a step that fails has its message", async () => {
    site.write(
      manifest("bad", {
        containers: [shell("main", "true", { image: "no.such.registry.invalid/x:1", imagePullPolicy: "IfNotPresent" })],
      }),
    );
    const failed = await until(
      "a failed pull",
      () => spans().find(({ name, status }) => name === "pull" && status?.code === "STATUS_CODE_ERROR"),
      { limitMs: 90_000 },
    );
    assert.match(failed.status?.message ?? "", /./);
  });
});
