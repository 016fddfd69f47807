import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";

const ids = async (ring: FakeRing): Promise<string[]> => (await ring.containers()).map(({ id }) => id);

async function exit(ring: FakeRing, code: number): Promise<void> {
  const running = (await ring.containers()).find(({ state }) => state === "running");
  ring.runtime.exit(running?.id ?? "", code);
  await ring.clock.advance(0);
}

describe("terminated containers that the node has too many of", () => {
  test("go at once, and neither the restart count nor the running container is touched", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").build());
    await exit(ring, 1);
    await ring.clock.advance(20_000);
    const all = await ring.containers();
    const [running, ended] = ["running", "exited"].map((state) => all.find((one) => one.state === state)?.id);
    const before = ring.status();
    assert.equal(before?.containerStatuses?.[0]?.restartCount, 1);
    const done = ring.pool.discard("uid-of-web", new Set([ended ?? "", running ?? ""]));
    await ring.clock.advance(1000);
    await done;
    assert.deepEqual(await ids(ring), [running]);
    const [status] = ring.status()?.containerStatuses ?? [];
    assert.deepEqual([status?.restartCount, status?.state?.running !== undefined], [1, true]);
  });

  test("of a pod that ended go with their sandbox, and its status stays", async () => {
    const ring = new FakeRing();
    await ring.want(
      pod("web").container("app", { terminationMessagePath: "/dev/termination-log" }).restart("Never").build(),
    );
    await exit(ring, 0);
    await ring.clock.advance(1000);
    const before = ring.status();
    assert.equal(before?.phase, "Succeeded");
    const written = (): readonly string[] =>
      [...ring.files.entries.keys()].filter((path) => /^\/root\/pods\/uid-of-web\/(etc-hosts|containers)/.test(path));
    assert.equal(written().length, 2);
    const done = ring.pool.discard("uid-of-web", "all");
    await ring.clock.advance(1000);
    await done;
    assert.deepEqual(written(), [], "what its containers wrote takes no room any more");
    assert.deepEqual(await ids(ring), []);
    const never = { signal: new AbortController().signal };
    assert.deepEqual(await ring.runtime.listSandboxes({}, never), []);
    await ring.clock.advance(600_000);
    assert.deepEqual(ring.status(), before);
  });

  test("stay while their pod runs, whoever asks for all", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").build());
    await ring.pool.discard("uid-of-web", "all");
    assert.equal((await ids(ring)).length, 1);
  });

  test("of a pod that goes meanwhile are not waited for", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").restart("Never").build());
    await exit(ring, 0);
    await ring.clock.advance(1000);
    ring.runtime.control.delay("removeContainer", 5000);
    const done = ring.pool.discard("uid-of-web", "all");
    await ring.want();
    await ring.clock.advance(60_000);
    await done;
    assert.deepEqual(await ids(ring), []);
  });
});
