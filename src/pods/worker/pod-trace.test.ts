import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { RuntimeError } from "../../adapters/runtime/port.ts";
import type { EndedSpan } from "../../lib/tracer.ts";
import { Tracer } from "../../lib/tracer.ts";

const web = pod("web").container("app").build();

async function traced(): Promise<{ ring: FakeRing; spans: EndedSpan[] }> {
  const spans: EndedSpan[] = [];
  const ring = new FakeRing();
  const { clock } = ring;
  ring.tracer = new Tracer({ clock, ended: (span) => void spans.push(span) }, { samplingRatePerMillion: 1_000_000 });
  await ring.restartAgent();
  return { ring, spans };
}

const named = (spans: readonly EndedSpan[], name: string): EndedSpan | undefined =>
  spans.find((span) => span.name === name);

test("the start of a pod is one trace: its syncs, and their steps, with Kubernetes' attributes", async () => {
  const { ring, spans } = await traced();
  await ring.want(web);
  assert.equal(ring.status()?.phase, "Running");
  const start = named(spans, "startPod");
  const sync = named(spans, "syncPod");
  assert.deepEqual(sync?.attributes, {
    "k8s.pod.uid": "uid-of-web",
    "k8s.pod": "default/web",
    "k8s.pod.name": "web",
    "k8s.namespace.name": "default",
    "k8s.pod.update_type": "create",
  });
  assert.equal(start?.parentSpanId, undefined);
  assert.equal(start?.attributes["k8s.pod.phase"], "Running");
  assert.equal(sync?.parentSpanId, start?.spanId);
  for (const step of ["sandbox", "create", "start"]) {
    const span = named(spans, step);
    assert.equal(span?.traceId, start?.traceId, step);
    assert.equal(named(spans, "syncPod")?.spanId, span?.parentSpanId, step);
  }
  assert.equal(named(spans, "create")?.attributes["k8s.container.name"], "app");
  assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
});

test("a step that fails has the message; the start goes on until the containers run", async () => {
  const { ring, spans } = await traced();
  ring.runtime.control.fail("createContainer", new RuntimeError("Unknown", "no space left"));
  await ring.want(web);
  assert.match(named(spans, "create")?.error ?? "", /no space left/);
  assert.equal(named(spans, "startPod"), undefined);
  await ring.clock.advance(60_000);
  assert.equal(ring.status()?.phase, "Running");
  assert.ok(named(spans, "startPod"));
});

test("a sync that finds nothing to do has no span; the end of a pod has two", async () => {
  const { ring, spans } = await traced();
  await ring.want(web);
  spans.length = 0;
  ring.pool.wake("uid-of-web");
  await ring.clock.advance(100);
  assert.deepEqual(spans, []);
  await ring.want();
  await ring.clock.advance(60_000);
  const stop = named(spans, "syncTerminatingPod");
  assert.ok(stop);
  assert.ok(named(spans, "syncTerminatedPod"));
  assert.equal(stop.parentSpanId, undefined);
});
