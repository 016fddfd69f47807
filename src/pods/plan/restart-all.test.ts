import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";

const rules = [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [42] } }];
const batch = pod("web")
  .init("setup")
  .container("app", { restartPolicy: "Never", restartPolicyRules: rules })
  .container("side")
  .restart("Never")
  .build();

async function running(ring: FakeRing): Promise<string[]> {
  return (await ring.containers()).filter(({ state }) => state === "running").map(({ name }) => name);
}

function condition(ring: FakeRing): string | undefined {
  return ring.status()?.conditions?.find(({ type }) => type === "AllContainersRestarting")?.status;
}

async function started(): Promise<FakeRing> {
  const ring = new FakeRing({ setup: { exitAfterMs: 1000 } });
  await ring.want(batch);
  await ring.clock.advance(1000);
  assert.deepEqual(await running(ring), ["app", "side"]);
  return ring;
}

async function exit(ring: FakeRing, name: string, code: number): Promise<void> {
  const found = (await ring.containers()).find((one) => one.name === name && one.state === "running");
  ring.runtime.exit(found?.id ?? "", code);
  await ring.clock.advance(0);
}

describe("a rule that restarts all containers", () => {
  test("restarts the pod from its first init container, and counts", async () => {
    const ring = await started();
    assert.equal(condition(ring), "False");
    const phases = new Set<string | undefined>();
    ring.pool.onStatus(() => phases.add(ring.status()?.phase), { signal: new AbortController().signal });
    await exit(ring, "app", 42);
    assert.deepEqual(await running(ring), ["setup"], "the others are stopped, and it begins anew");
    assert.equal(condition(ring), "True");
    const waiting = ring.status()?.containerStatuses?.map(({ state }) => state?.waiting?.reason);
    assert.deepEqual(waiting, ["RestartingAllContainers", "RestartingAllContainers"]);
    await ring.clock.advance(1000);
    assert.deepEqual(await running(ring), ["app", "side"]);
    assert.deepEqual(
      ring.status()?.containerStatuses?.map(({ restartCount }) => restartCount),
      [1, 1],
    );
    const exits = ring.status()?.containerStatuses?.map(({ lastState }) => lastState?.terminated?.exitCode);
    assert.deepEqual(exits, [137, 137], "as in Kubernetes, also of the container that triggered it");
    assert.equal(condition(ring), "False");
    assert.deepEqual([...phases], ["Running"], "with restartPolicy Never, and yet no status says that it ended");
  });

  test("shows and counts every removed container while it waits, in each round", async () => {
    const ring = await started();
    const message = "The container is removed because RestartAllContainers in place";
    const why = { reason: "RestartingAllContainers", message };
    for (const restartCount of [1, 2]) {
      await exit(ring, "app", 42);
      await ring.clock.advance(restartCount === 1 ? 0 : 10_000);
      const shown = ring.status()?.containerStatuses?.map(({ state, lastState, restartCount: count }) => {
        return { state, lastState, count };
      });
      const lastState = { terminated: { ...why, exitCode: 137 } };
      const one = { state: { waiting: why }, lastState, count: restartCount };
      assert.deepEqual(shown, [one, one]);
      await ring.clock.advance(1000);
      const counts = ring.status()?.containerStatuses?.map(({ restartCount: count }) => count);
      assert.deepEqual(counts, [restartCount, restartCount], "once it runs it is not counted again");
    }
  });

  test("the second one in a row backs off", async () => {
    const ring = await started();
    await exit(ring, "app", 42);
    await ring.clock.advance(1000);
    await exit(ring, "app", 42);
    assert.equal(ring.status()?.containerStatuses?.[0]?.state?.waiting?.reason, "CrashLoopBackOff");
    assert.deepEqual(await running(ring), ["side"]);
    await ring.clock.advance(10_000);
    assert.deepEqual(await running(ring), ["setup"]);
  });

  test("continues where an agent that died left it", async () => {
    const ring = await started();
    await exit(ring, "app", 42);
    await ring.restartAgent();
    await ring.want(batch);
    await ring.clock.advance(1000);
    assert.deepEqual(await running(ring), ["app", "side"]);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("another exit code ends the pod by its policy", async () => {
    const ring = await started();
    await exit(ring, "app", 1);
    await exit(ring, "side", 0);
    assert.equal(ring.status()?.phase, "Failed");
  });
});
