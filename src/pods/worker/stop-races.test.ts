import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { Pod } from "../../model/generated/types.ts";

const sidecar = { restartPolicy: "Always" };
const batch = pod("web").init("logger", sidecar).container("app").restart("Never").build();

/** As the API server shows a pod that it was asked to delete. */
function deleted(of: Pod, graceSeconds: number): Pod {
  const metadata = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: graceSeconds };
  return { ...of, metadata: { ...of.metadata, ...metadata } };
}

/** The same pod as another object, whose limits are therefore set again. */
function updated(of: Pod): Pod {
  return { ...of, metadata: { ...of.metadata, labels: { version: "2" } } };
}

/** Holds the next sync of the pod at the point where it sets the limits; answers what lets it go on. */
async function heldInSync(ring: FakeRing, of: Pod): Promise<() => Promise<void>> {
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  ring.ensureCgroup = () => gate;
  ring.publish(of);
  await ring.clock.advance(0);
  return async () => {
    ring.ensureCgroup = () => Promise.resolve();
    release();
    await ring.clock.advance(0);
  };
}

async function exit(ring: FakeRing, name: string, code: number): Promise<void> {
  const found = (await ring.containers()).find((one) => one.name === name && one.state === "running");
  ring.runtime.exit(found?.id ?? "", code);
}

async function running(ring: FakeRing): Promise<string[]> {
  return (await ring.containers()).filter(({ state }) => state === "running").map(({ name }) => name);
}

describe("a stop that arrives while a sync waits", () => {
  test("an eviction keeps its failure although the pod ends by itself at the same time", async () => {
    const ring = new FakeRing();
    await ring.want(batch);
    await exit(ring, "app", 0);
    const resume = await heldInSync(ring, updated(batch));
    ring.pool.worker("uid-of-web")?.evict({ reason: "Evicted", message: "The node was low on resource: memory." });
    await resume();
    await ring.clock.advance(60_000);
    assert.deepEqual([ring.status()?.phase, ring.status()?.reason], ["Failed", "Evicted"]);
  });

  test("an eviction shortens the grace period, and never lengthens it", async () => {
    for (const { asked, want } of [
      { asked: 3, want: 3 },
      { asked: 600, want: 30 },
    ]) {
      const ring = new FakeRing({ logger: { ignoresTerm: true } });
      await ring.want(batch);
      ring.pool.worker("uid-of-web")?.evict({ reason: "Evicted", message: "low" }, asked);
      await ring.clock.advance(want * 1000 - 1);
      assert.deepEqual(await running(ring), ["logger"]);
      await ring.clock.advance(2);
      assert.deepEqual(await running(ring), []);
    }
  });

  test("a deletion keeps its shorter grace period although the pod ends by itself at the same time", async () => {
    const ring = new FakeRing({ logger: { ignoresTerm: true } });
    await ring.want(batch);
    await exit(ring, "app", 0);
    const resume = await heldInSync(ring, updated(batch));
    ring.publish(deleted(batch, 3));
    await resume();
    await ring.clock.advance(3000);
    assert.deepEqual(await running(ring), []);
  });

  test("a deletion is acted on before the next action begins", async () => {
    const ring = new FakeRing();
    const web = pod("web").container("app").build();
    await ring.want(web);
    ring.runtime.image("app:2", { state: "pullable" });
    ring.runtime.control.delay("pullImage", 60_000);
    const next = pod("web").container("app", { image: "app:2" }).build();
    await exit(ring, "app", 1);
    const resume = await heldInSync(ring, next);
    ring.publish(deleted(next, 5));
    await resume();
    assert.equal(ring.runtime.control.count("pullImage"), 0);
    assert.equal(ring.pool.isFinished("uid-of-web"), true);
  });

  test("an image change is acted on before the next action begins", async () => {
    const ring = new FakeRing();
    const web = pod("web").container("app").build();
    await ring.want(web);
    ring.runtime.image("app:2", { state: "pullable" });
    ring.runtime.image("app:3");
    ring.runtime.control.delay("pullImage", 60_000);
    const resume = await heldInSync(ring, pod("web").container("app", { image: "app:2" }).build());
    ring.publish(pod("web").container("app", { image: "app:3" }).build());
    await resume();
    assert.equal(ring.runtime.control.count("pullImage"), 0);
    assert.equal(ring.status()?.containerStatuses?.[0]?.state?.running === undefined, false);
  });
});

test("a deadline does not lengthen the grace period of a deletion that came before it", async () => {
  const ring = new FakeRing({ app: { ignoresTerm: true } });
  ring.runtime.control.delay("startContainer", 10_000);
  const web = pod("web").container("app").with({ activeDeadlineSeconds: 5 }).build();
  await ring.want(web);
  await ring.clock.advance(2000);
  ring.publish(deleted(web, 3));
  await ring.clock.advance(8000);
  assert.deepEqual(await running(ring), ["app"]);
  await ring.clock.advance(3000);
  assert.deepEqual(await running(ring), []);
  assert.equal(ring.status()?.phase, "Failed");
});
