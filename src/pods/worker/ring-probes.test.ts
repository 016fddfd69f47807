import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { FakeProgram } from "../../adapters/runtime/fake-program.ts";
import type { Container, Probe } from "../../model/generated/types.ts";

/** A container whose commands `ready`, `alive` and `started` answer as the test says at the moment. */
class App {
  readonly healthy = new Set<string>();

  program(more: FakeProgram = {}): FakeProgram {
    return { ...more, exec: ([command = ""]) => ({ exitCode: this.healthy.has(command) ? 0 : 1, stdout: command }) };
  }
}

const probe = (command: string, more: Partial<Probe> = {}): Probe => ({
  exec: { command: [command] },
  periodSeconds: 10,
  failureThreshold: 3,
  ...more,
});

function begin(container: Partial<Container>, program: FakeProgram = {}) {
  const app = new App();
  const ring = new FakeRing({ app: app.program(program) });
  const web = pod("web").container("app", container).build();
  return { app, ring, web };
}

function ready(ring: FakeRing): string | undefined {
  return ring.status()?.conditions?.find(({ type }) => type === "Ready")?.status;
}

function container(ring: FakeRing) {
  return ring.status()?.containerStatuses?.[0];
}

function events(ring: FakeRing, reason: string): string[] {
  return ring.journal
    .events(0)
    .filter((event) => event.reason === reason)
    .map(({ message }) => message);
}

describe("probes on the ring", () => {
  test("readiness: running but not ready until the probe succeeds, then ready without reading the runtime again", async () => {
    const { app, ring, web } = begin({ readinessProbe: probe("ready") });
    await ring.want(web);
    assert.deepEqual([ring.status()?.phase, ready(ring), container(ring)?.started], ["Running", "False", true]);
    app.healthy.add("ready");
    const reads = ring.runtime.control.count("containerStatus");
    await ring.clock.advance(1000);
    assert.deepEqual([ready(ring), container(ring)?.ready], ["True", true]);
    assert.equal(ring.runtime.control.count("containerStatus"), reads);
    assert.deepEqual(events(ring, "Unhealthy"), []);
  });

  test("readiness lost after as many failures as the threshold says, with an event for each", async () => {
    const { app, ring, web } = begin({ readinessProbe: probe("ready") });
    app.healthy.add("ready");
    await ring.want(web);
    assert.equal(ready(ring), "True");
    app.healthy.clear();
    await ring.clock.advance(29_000);
    assert.equal(ready(ring), "True");
    await ring.clock.advance(1000);
    assert.equal(ready(ring), "False");
    assert.deepEqual(events(ring, "Unhealthy"), ["Readiness probe failed: ready"]);
    assert.equal(ring.journal.events(0).find(({ reason }) => reason === "Unhealthy")?.count, 3);
  });

  test("liveness: killed with the message of Kubernetes and restarted", async () => {
    const { app, ring, web } = begin({ livenessProbe: probe("alive") });
    app.healthy.add("alive");
    await ring.want(web);
    await ring.clock.advance(60_000);
    assert.equal(container(ring)?.restartCount, 0);
    app.healthy.clear();
    await ring.clock.advance(29_000);
    assert.equal(container(ring)?.restartCount, 0);
    await ring.clock.advance(1000);
    assert.equal(container(ring)?.restartCount, 1);
    assert.deepEqual(events(ring, "Killing"), ["Container app failed liveness probe, will be restarted"]);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("liveness that never succeeds ends in the crash back-off", async () => {
    const { ring, web } = begin({ livenessProbe: probe("alive", { periodSeconds: 1, failureThreshold: 1 }) });
    await ring.want(web);
    await ring.clock.advance(15_000);
    assert.equal(container(ring)?.state?.waiting?.reason, "CrashLoopBackOff");
    const starts = ring.runtime.control.count("startContainer");
    assert.ok(starts >= 2 && starts <= 4, `${starts} starts in 15 s`);
    await ring.clock.advance(300_000);
    assert.ok(ring.runtime.control.count("startContainer") <= 9);
  });

  test("liveness with policy Never: the pod fails", async () => {
    const { ring } = begin({});
    const web = pod("web")
      .container("app", { livenessProbe: probe("alive", { failureThreshold: 1 }) })
      .restart("Never")
      .build();
    await ring.want(web);
    await ring.clock.advance(10_000);
    assert.equal(ring.status()?.phase, "Failed");
    assert.equal(ring.runtime.control.count("startContainer"), 1);
  });

  test("the probe's grace period replaces the pod's", async () => {
    const liveness = probe("alive", { failureThreshold: 1, terminationGracePeriodSeconds: 5 });
    const { ring, web } = begin({ livenessProbe: liveness }, { ignoresTerm: true });
    await ring.want(web);
    await ring.clock.advance(10_000);
    await ring.clock.advance(4900);
    assert.equal(container(ring)?.restartCount, 0);
    await ring.clock.advance(100);
    assert.equal(container(ring)?.restartCount, 1);
  });

  test("startup: not started and not ready, and nothing else is probed, until it succeeds", async () => {
    const probes = { startupProbe: probe("started", { failureThreshold: 30 }), livenessProbe: probe("alive") };
    const { app, ring, web } = begin(probes);
    app.healthy.add("alive");
    await ring.want(web);
    await ring.clock.advance(25_000);
    assert.deepEqual([container(ring)?.started, ready(ring)], [false, "False"]);
    app.healthy.add("started");
    await ring.clock.advance(3000);
    assert.deepEqual([container(ring)?.started, ready(ring)], [true, "True"]);
    assert.equal(container(ring)?.restartCount, 0);
  });

  test("startup that never succeeds restarts the container after threshold × period", async () => {
    const { ring, web } = begin({ startupProbe: probe("started", { failureThreshold: 6 }) });
    await ring.want(web);
    await ring.clock.advance(59_900);
    assert.equal(container(ring)?.restartCount, 0);
    await ring.clock.advance(100);
    assert.equal(container(ring)?.restartCount, 1);
    assert.deepEqual(events(ring, "Killing"), ["Container app failed startup probe, will be restarted"]);
  });

  test("ready at once while the kill of another container takes its time", async () => {
    const app = new App();
    const stubborn: FakeProgram = { ignoresTerm: true };
    const ring = new FakeRing({ app: app.program(), side: app.program(stubborn) });
    const web = pod("web")
      .container("app", { readinessProbe: probe("ready", { periodSeconds: 1 }) })
      .container("side", { livenessProbe: probe("alive", { periodSeconds: 1, failureThreshold: 1 }) })
      .build();
    await ring.want(web);
    await ring.clock.advance(2000);
    assert.equal(ring.runtime.control.inFlight("stopContainer"), 1);
    app.healthy.add("ready");
    await ring.clock.advance(2000);
    assert.equal(ring.runtime.control.inFlight("stopContainer"), 1);
    const own = ring.status()?.containerStatuses?.find(({ name }) => name === "app");
    assert.equal(own?.ready, true);
    assert.equal(ready(ring), "True");
    app.healthy.delete("ready");
    await ring.clock.advance(4000);
    assert.equal(ready(ring), "False");
  });

  test("a pod in its grace period turns not ready, and is not restarted for its liveness", async () => {
    const probes = {
      readinessProbe: probe("ready", { periodSeconds: 1, failureThreshold: 1 }),
      livenessProbe: probe("alive", { periodSeconds: 1, failureThreshold: 1 }),
    };
    const { app, ring, web } = begin(probes, { ignoresTerm: true });
    app.healthy.add("ready").add("alive");
    await ring.want(web);
    assert.equal(ready(ring), "True");
    ring.publish();
    await ring.clock.advance(5000);
    assert.equal(ready(ring), "True");
    app.healthy.clear();
    await ring.clock.advance(2000);
    assert.equal(ready(ring), "False");
    const unhealthy = events(ring, "Unhealthy");
    assert.deepEqual(unhealthy, ["Readiness probe failed: ready"]);
    await ring.clock.advance(30_000);
    assert.equal(ring.runtime.control.count("startContainer"), 1);
    assert.deepEqual([...ring.files.entries.keys()], []);
    const asked = ring.runtime.control.count("execSync");
    await ring.clock.advance(30_000);
    assert.equal(ring.runtime.control.count("execSync"), asked);
    assert.equal(ring.view.summaries().length, 0);
  });

  test("a pod that is deleted before it has started becomes neither ready nor initialized", async () => {
    const app = new App();
    const ring = new FakeRing({ app: app.program({ ignoresTerm: true }), side: app.program({ ignoresTerm: true }) });
    const startupProbe = probe("started", { failureThreshold: 30 });
    const initialized = (): string | undefined =>
      ring.status()?.conditions?.find(({ type }) => type === "Initialized")?.status;
    for (const web of [
      pod("web").container("app", { startupProbe }).build(),
      pod("web").init("side", { restartPolicy: "Always", startupProbe }).container("app").build(),
    ]) {
      await ring.want(web);
      await ring.clock.advance(2000);
      assert.equal(ready(ring), "False");
      const before = initialized();
      const said: (string | undefined)[] = [];
      const listening = new AbortController();
      ring.pool.onStatus(() => said.push(`${ready(ring)} ${initialized()}`), listening);
      const metadata = { ...web.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 20 };
      await ring.want({ ...web, metadata });
      await ring.clock.advance(10_000);
      assert.ok(said.length > 0);
      assert.deepEqual(new Set(said), new Set([`False ${before}`]));
      listening.abort();
      await ring.want();
      await ring.clock.advance(60_000);
    }
  });

  test("a container with another image is probed from the beginning", async () => {
    const { app, ring, web } = begin({ readinessProbe: probe("ready") });
    app.healthy.add("ready");
    await ring.want(web);
    assert.equal(ready(ring), "True");
    app.healthy.clear();
    await ring.want(
      pod("web")
        .container("app", { image: "app:2", readinessProbe: probe("ready") })
        .build(),
    );
    assert.equal(ready(ring), "False");
    app.healthy.add("ready");
    await ring.clock.advance(1000);
    assert.equal(ready(ring), "True");
  });
});

describe("another agent on the same runtime", () => {
  const probes = { startupProbe: probe("started"), livenessProbe: probe("alive"), readinessProbe: probe("ready") };

  test("Ready never flips", async () => {
    const { app, ring, web } = begin(probes);
    app.healthy.add("started").add("alive").add("ready");
    await ring.want(web);
    await ring.clock.advance(1000);
    assert.equal(ready(ring), "True");
    await ring.restartAgent();
    const said: (string | undefined)[] = [];
    ring.pool.onStatus(() => said.push(ready(ring)), { signal: new AbortController().signal });
    await ring.want(web);
    await ring.clock.advance(60_000);
    assert.ok(said.length > 0);
    assert.deepEqual(new Set(said), new Set(["True"]));
    assert.equal(container(ring)?.restartCount, 0);
    assert.equal(container(ring)?.started, true);
  });

  test("what was not ready stays not ready until its probe succeeds", async () => {
    const { app, ring, web } = begin(probes);
    app.healthy.add("started").add("alive");
    await ring.want(web);
    await ring.clock.advance(1000);
    await ring.restartAgent();
    await ring.want(web);
    assert.deepEqual([ready(ring), container(ring)?.started], ["False", true]);
    app.healthy.add("ready");
    await ring.clock.advance(1000);
    assert.equal(ready(ring), "True");
  });
});
