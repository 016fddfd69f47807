import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";

/** The agent was started again with other settings of cgroups, so that a running pod has no cgroup of these. */
describe("a running pod whose cgroup is missing", () => {
  const start = async (policy: "Always" | "Never"): Promise<{ ring: FakeRing; before: string[] }> => {
    const ring = new FakeRing();
    const wanted = pod("web").container("app").restart(policy).build();
    await ring.want(wanted);
    assert.equal(ring.status()?.phase, "Running");
    const before = await readySandboxes(ring);
    ring.hasCgroup = false;
    await ring.restartAgent();
    await ring.want(wanted);
    return { ring, before };
  };
  const readySandboxes = async (ring: FakeRing): Promise<string[]> => {
    const list = await ring.runtime.listSandboxes({}, { signal: new AbortController().signal });
    return list.filter(({ state }) => state === "ready").map(({ id }) => id);
  };

  test("is killed and created again, once", async () => {
    const { ring, before } = await start("Always");
    await ring.clock.advance(60_000);
    assert.deepEqual(
      (await ring.containers()).map(({ attempt, state }) => [attempt, state]),
      [
        [0, "exited"],
        [1, "running"],
      ],
    );
    const after = await readySandboxes(ring);
    assert.equal(after.length, 1);
    assert.notDeepEqual(after, before);
    assert.equal(ring.status()?.phase, "Running");
    await ring.clock.advance(600_000);
    assert.equal((await ring.containers()).length, 2);
  });

  test("is killed and not created again if it never restarts", async () => {
    const { ring } = await start("Never");
    await ring.clock.advance(60_000);
    assert.equal(ring.status()?.phase, "Failed");
    assert.deepEqual(
      (await ring.containers()).map(({ state }) => state),
      ["exited"],
    );
  });

  test("a pod that never ran is simply started", async () => {
    const ring = new FakeRing();
    ring.hasCgroup = false;
    await ring.want(pod("web").container("app").build());
    assert.equal(ring.status()?.phase, "Running");
    assert.equal((await ring.containers()).length, 1);
  });
});
