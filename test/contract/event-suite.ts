import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { RuntimeEvent } from "../../src/adapters/runtime/port.ts";
import { EventRecorder } from "./event-recorder.ts";
import { type Harness, never, withCode } from "./harness.ts";
import { exited, TestPod } from "./test-pod.ts";

const isResync = (event: RuntimeEvent): boolean => event.kind === "resync";

/** What the event stream promises, and what a runtime that goes away looks like. */
export function eventContract(harness: Harness): void {
  let shared: TestPod | undefined;
  const pod = (): TestPod => {
    assert.ok(shared, "the pod did not start");
    return shared;
  };
  before(async () => {
    shared = await TestPod.run(harness);
  });
  after(() => shared?.remove());

  test("the first event is a resync, and nothing older follows", async (t) => {
    const old = await pod().start({ exitAfterMs: 0 });
    await exited(harness, old);
    const recorder = new EventRecorder(harness().runtime, harness().clock).endsWith(t);
    await recorder.next(isResync);
    const id = await pod().start({});
    await recorder.about(id, "started");
    assert.deepEqual(recorder.events[0], { kind: "resync" });
    assert.ok(
      !recorder.events.some((event) => event.kind === "container" && event.id === old && event.type !== "stopped"),
    );
    assert.notEqual(harness().runtime.eventSource, "none");
    await recorder.stop();
    await harness().runtime.removeContainer(id, never);
  });

  test("tells created, started, stopped and deleted in this order", async (t) => {
    const recorder = new EventRecorder(harness().runtime, harness().clock).endsWith(t);
    await recorder.next(isResync);
    const id = await pod().start({});
    // containerd 2 tells of one that ends while it is being started in no order.
    await recorder.about(id, "started");
    await harness().runtime.stopContainer(id, 1, never);
    await recorder.about(id, "stopped");
    await harness().runtime.removeContainer(id, never);
    await recorder.about(id, "deleted");
    await recorder.stop();
    const types = recorder.events.flatMap((event) =>
      event.kind === "container" && event.id === id ? [event.type] : [],
    );
    assert.deepEqual([...new Set(types)], ["created", "started", "stopped", "deleted"]);
  });

  test("after started and stopped the state agrees at once, and the exit is told without delay", async (t) => {
    const { runtime, clock } = harness();
    const seen: string[] = [];
    const delays: number[] = [];
    const recorder = new EventRecorder(runtime, clock, async (event) => {
      if (event.kind !== "container" || (event.type !== "started" && event.type !== "stopped")) return;
      const heard = clock.now().wall;
      const status = await runtime.containerStatus(event.id, never).catch(() => undefined);
      if (status === undefined) return;
      const [summary] = await runtime.listContainers({ id: event.id }, never);
      seen.push(`${event.type}: ${status.state} ${summary?.state}`);
      if (event.type === "stopped") delays.push(heard - status.finishedAt);
    }).endsWith(t);
    await recorder.next(isResync);
    for (let round = 0; round < 5; round++) {
      const id = await pod().start({ exitAfterMs: 150, exitCode: 4 });
      await recorder.about(id, "stopped");
      const { exitCode, reason } = await runtime.containerStatus(id, never);
      assert.deepEqual([exitCode, reason], [4, "Error"]);
    }
    await recorder.stop();
    for (const line of seen)
      assert.match(line, /^(started: (running running|exited .*|running exited)|stopped: exited exited)$/);
    // Milliseconds on an idle machine; the limit only catches polling.
    assert.ok(Math.min(...delays) < 500, `delays ${delays.join(", ")} ms`);
  });

  test("a provisional exit is followed by an event after which it is settled", async (t) => {
    const { runtime, clock } = harness();
    const settled = new Map<string, boolean>();
    const recorder = new EventRecorder(runtime, clock, async (event) => {
      if (event.kind !== "container" || event.type !== "stopped") return;
      const status = await runtime.containerStatus(event.id, never).catch(() => undefined);
      if (status !== undefined) settled.set(event.id, status.isProvisional !== true);
    }).endsWith(t);
    await recorder.next(isResync);
    for (let round = 0; round < 3; round++) {
      const id = await pod().start({ exitAfterMs: 100, exitCode: 4 });
      await recorder.next((event) => event.kind === "container" && event.id === id && settled.get(id) === true);
      await runtime.removeContainer(id, never);
    }
    await recorder.stop();
  });

  test("a command that ends inside a container is no stop of the container", async (t) => {
    const { runtime, clock } = harness();
    const id = await pod().start({});
    const recorder = new EventRecorder(runtime, clock).endsWith(t);
    await recorder.next(isResync);
    await runtime.execSync(id, { command: harness().execCommand({ exitCode: 1 }), timeoutSeconds: 10 }, never);
    await runtime.stopContainer(id, 5, never);
    await recorder.about(id, "stopped");
    assert.equal((await runtime.containerStatus(id, never)).state, "exited");
    const stops = recorder.events.filter(
      (event) => event.kind === "container" && event.id === id && event.type === "stopped",
    );
    await recorder.stop();
    assert.ok(stops.length >= 1);
    await runtime.removeContainer(id, never);
  });

  test("reading ends when the signal aborts", async (t) => {
    const recorder = new EventRecorder(harness().runtime, harness().clock).endsWith(t);
    await recorder.next(isResync);
    await recorder.stop();
    assert.equal(harness().runtime.eventSource, "none");
  });

  test("a killed runtime is Unavailable at once, comes back with a resync, and its containers went on", async (t) => {
    const { runtime, clock } = harness();
    const recorder = new EventRecorder(runtime, clock).endsWith(t);
    await recorder.next(isResync);
    const id = await pod().start({});
    const shortLived = await pod().start({ exitAfterMs: 1500, exitCode: 9 });
    await recorder.about(shortLived, "started");

    const controller = new AbortController();
    const command = harness().execCommand({ takesMs: 60_000 });
    const underWay = runtime.execSync(id, { command, timeoutSeconds: 0 }, { signal: controller.signal });
    const cut = assert.rejects(underWay, withCode("Unavailable"));
    await clock.sleep(300);
    const before = recorder.events.length;
    await harness().kill();
    await cut;
    for (let round = 0; round < 3; round++) {
      const began = clock.now().mono;
      await assert.rejects(runtime.version(never), withCode("Unavailable"));
      assert.ok(clock.now().mono - began < 5000, "fails quickly");
      await clock.sleep(500);
    }
    await clock.sleep(500);
    await harness().revive();

    const back = clock.now().mono;
    for (;;) {
      const answered = await runtime.version(never).then(
        () => true,
        () => false,
      );
      if (answered) break;
      assert.ok(clock.now().mono - back < 5000, "works again soon after the runtime is back");
      await clock.sleep(50);
    }
    await recorder.next(isResync, { from: before });
    assert.equal((await runtime.containerStatus(id, never)).state, "running");
    const lost = await exited(harness, shortLived);
    assert.equal(lost.state, "exited", "what ended meanwhile is seen after the resync");

    await runtime.stopContainer(id, 1, never);
    await recorder.next((event) => event.kind === "container" && event.id === id && event.type === "stopped", {
      from: before,
    });
    await recorder.stop();
  });
}
