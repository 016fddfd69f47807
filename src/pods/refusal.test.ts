import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeRing } from "../../test/support/ring.ts";
import { refusalOf } from "./refusal.ts";

const good = pod("web").container("app").build();
const bad = pod("web")
  .container("app", { resources: { claims: [{ name: "gpu" }] } })
  .build();

describe("a pod that asks for what cannot be done", () => {
  test("is refused by the names of the fields", () => {
    assert.equal(refusalOf(good), undefined);
    assert.match(refusalOf(bad)?.message ?? "", /spec\.containers\[0\]\.resources\.claims: /);
  });

  test("waits and says why, and is not Failed: a controller would replace it without end", async () => {
    const ring = new FakeRing();
    await ring.want(bad);
    assert.equal(ring.status()?.phase, "Pending");
    const waiting = ring.status()?.containerStatuses?.[0]?.state?.waiting;
    assert.equal(waiting?.reason, "CreateContainerConfigError");
    assert.match(waiting?.message ?? "", /resources\.claims/);
    assert.deepEqual(await ring.containers(), []);
    await ring.clock.advance(600_000);
    assert.equal(ring.journal.events(0).filter(({ reason }) => reason === "Failed").length, 1, "said once");
  });

  test("is started as soon as it no longer asks for it", async () => {
    const ring = new FakeRing();
    await ring.want(bad);
    await ring.want(good);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("keeps what runs already, and can be removed", async () => {
    const ring = new FakeRing();
    await ring.want(good);
    await ring.want(bad);
    assert.equal((await ring.containers()).filter(({ state }) => state === "running").length, 1);
    await ring.want();
    await ring.clock.advance(60_000);
    assert.deepEqual(await ring.containers(), []);
  });
});
