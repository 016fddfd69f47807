import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";

const IMAGES = ["one", "two", "three"];

/** Three pods that need an image each, pulled one at a time, each in this time. */
async function queued(pullMs: number): Promise<FakeRing> {
  const ring = new FakeRing();
  for (const name of IMAGES) ring.runtime.image(`${name}:1`, { state: "pullable", pullMs });
  await ring.wantAsIs(
    ...IMAGES.map((name) =>
      pod(name)
        .container("app", { image: `${name}:1` })
        .build(),
    ),
  );
  return ring;
}

function waiting(ring: FakeRing, name: string): { reason?: string; message?: string } | undefined {
  return ring.status(name)?.containerStatuses?.[0]?.state?.waiting;
}

/** How many statuses are published for the pod while `work` runs. */
async function published(ring: FakeRing, name: string, work: () => Promise<void>): Promise<number> {
  let count = 0;
  const listening = new AbortController();
  ring.pool.onStatus((uid) => void (uid === `uid-of-${name}` && count++), { signal: listening.signal });
  await work();
  listening.abort();
  return count;
}

describe("a pull that waits for others", () => {
  test("shows in the pod's status behind how many, without an error", async () => {
    const ring = await queued(60_000);
    await ring.clock.advance(3000);
    assert.deepEqual(waiting(ring, "one"), { reason: "ContainerCreating" });
    assert.deepEqual(waiting(ring, "two"), { reason: "ContainerCreating", message: "waiting behind 1 pull" });
    assert.deepEqual(waiting(ring, "three"), { reason: "ContainerCreating", message: "waiting behind 2 pulls" });
    assert.equal(ring.status("three")?.phase, "Pending");
    const warnings = ring.journal.events(0).filter(({ type }) => type === "Warning");
    assert.deepEqual(warnings, []);
  });

  test("follows the queue, and says nothing once it is pulled", async () => {
    const ring = await queued(60_000);
    await ring.clock.advance(75_000);
    assert.deepEqual(waiting(ring, "two"), { reason: "ContainerCreating" });
    assert.deepEqual(waiting(ring, "three"), { reason: "ContainerCreating", message: "waiting behind 1 pull" });
    await ring.clock.advance(120_000);
    assert.equal(ring.status("three")?.phase, "Running");
  });

  test("of an init container shows there", async () => {
    const ring = new FakeRing();
    for (const name of ["one", "two"]) ring.runtime.image(`${name}:1`, { state: "pullable", pullMs: 60_000 });
    const first = pod("one").container("app", { image: "one:1" }).build();
    await ring.wantAsIs(first, pod("two").init("setup", { image: "two:1" }).container("app").build());
    await ring.clock.advance(3000);
    const status = ring.status("two");
    const init = status?.initContainerStatuses?.[0]?.state?.waiting;
    assert.deepEqual(init, { reason: "PodInitializing", message: "waiting behind 1 pull" });
    assert.deepEqual(status?.containerStatuses?.[0]?.state?.waiting, { reason: "PodInitializing" });
  });

  test("for a moment costs no status", async () => {
    const ring = await queued(900);
    const count = await published(ring, "two", () => ring.clock.advance(1500));
    assert.equal(waiting(ring, "two")?.message, undefined);
    assert.ok(count <= 1, `${count} statuses: only that the pod is ready to start`);
  });

  test("behind a queue that moves fast is shown every ten seconds at most", async () => {
    const ring = new FakeRing();
    const names = Array.from({ length: 30 }, (_, index) => `p${index}`);
    for (const name of names) ring.runtime.image(`${name}:1`, { state: "pullable", pullMs: 1000 });
    await ring.wantAsIs(
      ...names.map((name) =>
        pod(name)
          .container("app", { image: `${name}:1` })
          .build(),
      ),
    );
    await ring.clock.advance(1000);
    const count = await published(ring, "p29", () => ring.clock.advance(25_000));
    assert.ok(count >= 2 && count <= 3, `${count} statuses`);
    assert.match(waiting(ring, "p29")?.message ?? "", /^waiting behind \d+ pulls$/);
  });

  test("and is cancelled leaves no message behind", async () => {
    const ring = await queued(60_000);
    await ring.clock.advance(3000);
    await ring.wantAsIs(pod("one").container("app", { image: "one:1" }).build());
    await ring.clock.advance(1000);
    assert.equal(ring.status("two"), undefined);
    assert.deepEqual(waiting(ring, "one"), { reason: "ContainerCreating" });
  });
});
