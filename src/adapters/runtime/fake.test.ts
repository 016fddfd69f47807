import assert from "node:assert/strict";
import { test } from "node:test";
import { containerConfig, type RuntimeHarness, sandboxConfig } from "../../../test/contract/harness.ts";
import { FakeClock } from "../../lib/clock.ts";
import { FakeRuntime } from "./fake.ts";
import { RuntimeError, type RuntimeEvent } from "./port.ts";

const never = { signal: new AbortController().signal };

/** Only what the configuration builders read. */
const shape = {
  image: "web:1",
  cgroupParent: "",
  logDirectory: "/logs",
  command: () => ["x"],
} as unknown as RuntimeHarness;

async function startOne(runtime: FakeRuntime): Promise<{ sandboxId: string; id: string }> {
  runtime.image("web:1");
  const sandbox = sandboxConfig(shape);
  const sandboxId = await runtime.runSandbox(sandbox, "", never);
  const id = await runtime.createContainer({ sandboxId, sandbox, config: containerConfig(shape) }, never);
  await runtime.startContainer(id, never);
  return { sandboxId, id };
}

test("a scripted failure comes as often as asked, before anything is done", async () => {
  const runtime = new FakeRuntime({ clock: new FakeClock() });
  const wanted = new RuntimeError("Unavailable", "scripted");
  runtime.control.fail("runSandbox", wanted, 2);
  for (let round = 0; round < 2; round++) {
    await assert.rejects(runtime.runSandbox(sandboxConfig(shape), "", never), (error) => error === wanted);
  }
  await runtime.runSandbox(sandboxConfig(shape), "", never);
  assert.equal((await runtime.listSandboxes({}, never)).length, 1);
  assert.equal(runtime.control.count("runSandbox"), 3);
});

test("a lost answer leaves the work done", async () => {
  const runtime = new FakeRuntime({ clock: new FakeClock() });
  const config = sandboxConfig(shape);
  runtime.control.failAfterwards("runSandbox", new RuntimeError("Timeout", "lost"));
  await assert.rejects(runtime.runSandbox(config, "", never));
  await assert.rejects(runtime.runSandbox(config, "", never), /is reserved/);
});

test("a delay is counted on the clock, and calls that overlap are gauged", async () => {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock });
  runtime.control.delay("version", 100);
  const calls = [runtime.version(never), runtime.version(never), runtime.version(never)];
  await clock.advance(99);
  assert.equal(runtime.control.inFlight("version"), 3);
  await clock.advance(1);
  await Promise.all(calls);
  assert.deepEqual([runtime.control.inFlight("version"), runtime.control.peak("version")], [0, 3]);
});

test("while it is away everything is Unavailable, and lost containers are seen after the resync", async () => {
  const runtime = new FakeRuntime({ clock: new FakeClock() });
  const { id, sandboxId } = await startOne(runtime);
  const controller = new AbortController();
  const events: RuntimeEvent[] = [];
  const reading = (async () => {
    for await (const event of runtime.events({ signal: controller.signal })) events.push(event);
  })();
  runtime.goAway("lost");
  await assert.rejects(
    runtime.containerStatus(id, never),
    (error) => error instanceof RuntimeError && error.code === "Unavailable",
  );
  assert.equal(runtime.eventSource, "none");
  runtime.comeBack();
  assert.equal((await runtime.containerStatus(id, never)).state, "exited");
  assert.equal((await runtime.sandboxStatus(sandboxId, never)).state, "notReady");
  controller.abort();
  await reading;
  assert.ok(
    events.every(({ kind }) => kind === "resync"),
    "nothing is told while it is away",
  );
});

test("a container runs its script on the clock", async () => {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock });
  runtime.program("main", ({ attempt }) => ({ exitAfterMs: 1000, exitCode: attempt + 5 }));
  const { id } = await startOne(runtime);
  await clock.advance(999);
  assert.equal((await runtime.containerStatus(id, never)).state, "running");
  await clock.advance(1);
  const { state, exitCode, startedAt, finishedAt } = await runtime.containerStatus(id, never);
  assert.deepEqual([state, exitCode, finishedAt - startedAt], ["exited", 5, 1000]);
});

test("images are present, pullable, broken or nowhere", async () => {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock });
  runtime.image("slow:1", { state: "pullable", pullMs: 5000 });
  runtime.image("broken:1", { state: "broken" });
  const pull = runtime.pullImage("slow:1", {}, never);
  await clock.advance(4999);
  assert.equal(await runtime.imageStatus("slow:1", never), undefined);
  await clock.advance(1);
  assert.equal((await runtime.imageStatus("slow:1", never))?.id, await pull);
  await assert.rejects(runtime.pullImage("broken:1", {}, never), /broken:1/);
  await assert.rejects(
    runtime.pullImage("nowhere:1", {}, never),
    (error) => error instanceof RuntimeError && error.code === "NotFound",
  );
});
