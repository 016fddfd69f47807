import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";

const never = { signal: new AbortController().signal };

/** Removes the sandbox with all containers in it, as `crictl rmp -f` does. */
async function removeSandbox(ring: FakeRing): Promise<void> {
  for (const { id } of await ring.runtime.listSandboxes({}, never)) await ring.runtime.removeSandbox(id, never);
  await ring.clock.advance(0);
}

async function exit(ring: FakeRing, name: string, code: number): Promise<void> {
  const found = (await ring.containers()).find((container) => container.name === name);
  ring.runtime.exit(found?.id ?? "", code);
  await ring.clock.advance(0);
}

/** Names of the containers that were ever created, in order. */
function created(ring: FakeRing): readonly string[] {
  const calls = ring.runtime.control.calls.filter(({ method }) => method === "createContainer");
  return calls.map(({ subject }) => subject);
}

const stateOf = (ring: FakeRing, name: string) =>
  ring.status()?.containerStatuses?.find((status) => status.name === name)?.state;

describe("a container that the runtime lost", () => {
  test("does not run twice when it completed and the others go on", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").container("side").restart("OnFailure").build());
    await exit(ring, "app", 0);
    await removeSandbox(ring);
    assert.deepEqual(created(ring), ["app", "side", "side"]);
    assert.equal(stateOf(ring, "app")?.terminated?.exitCode, 0);
    assert.equal(ring.status()?.phase, "Running");
    await exit(ring, "side", 0);
    assert.equal(ring.status()?.phase, "Succeeded");
  });

  test("does not run twice when its restart policy is Never, and the pod fails", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").container("side").restart("Never").build());
    await exit(ring, "app", 0);
    await removeSandbox(ring);
    assert.deepEqual(created(ring), ["app", "side"]);
    assert.equal(stateOf(ring, "app")?.terminated?.exitCode, 0);
    assert.equal(stateOf(ring, "side")?.terminated?.exitCode, 137);
    assert.equal(ring.status()?.phase, "Failed");
  });

  test("does not run twice when it alone is removed, and the others go on", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").container("side").restart("Never").build());
    const app = (await ring.containers()).find(({ name }) => name === "app");
    await ring.runtime.removeContainer(app?.id ?? "", never);
    await ring.clock.advance(0);
    assert.deepEqual(created(ring), ["app", "side"]);
    assert.equal(stateOf(ring, "app")?.terminated?.exitCode, 137);
    assert.notEqual(stateOf(ring, "side")?.running, undefined);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("stays what it was when its pod had completed", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").restart("Never").build());
    await exit(ring, "app", 0);
    const completed = ring.status();
    assert.equal(completed?.phase, "Succeeded");
    await removeSandbox(ring);
    await ring.clock.advance(600_000);
    assert.deepEqual(ring.status(), completed);
    assert.deepEqual(created(ring), ["app"]);
  });

  test("is no end of a pod with policy Never whose regular containers never ran: an init container", async () => {
    const ring = new FakeRing();
    ring.runtime.image("first:1");
    await ring.wantAsIs(pod("web").init("first").container("app").restart("Never").build());
    await exit(ring, "first", 0);
    await removeSandbox(ring);
    await ring.clock.advance(60_000);
    assert.deepEqual(created(ring), ["first", "first"]);
    assert.equal(ring.status()?.phase, "Pending");
  });

  test("is no end of a pod with policy Never whose regular containers never ran: a sidecar", async () => {
    const ring = new FakeRing({ first: { exec: () => ({ exitCode: 1, stdout: "" }) } });
    const sidecar = { restartPolicy: "Always", startupProbe: { exec: { command: ["started"] } } };
    await ring.want(pod("web").init("first", sidecar).container("app").restart("Never").build());
    await removeSandbox(ring);
    assert.deepEqual(created(ring), ["first", "first"]);
    assert.equal(ring.status()?.phase, "Pending");
  });

  test("is restarted when its restart policy says so", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").build());
    await removeSandbox(ring);
    assert.deepEqual(created(ring), ["app", "app"]);
    assert.equal(ring.status()?.containerStatuses?.[0]?.restartCount, 1);
    assert.equal(ring.status()?.phase, "Running");
  });
});

describe("PodReadyToStartContainers", () => {
  const condition = (ring: FakeRing) =>
    ring.status()?.conditions?.find(({ type }) => type === "PodReadyToStartContainers")?.status;

  test("is True while an image is pulled", async () => {
    const ring = new FakeRing();
    ring.runtime.image("app:1", { state: "pullable", pullMs: 60_000 });
    await ring.wantAsIs(pod("web").container("app").build());
    assert.equal(condition(ring), "False");
    await ring.clock.advance(1000);
    assert.equal(condition(ring), "True");
    assert.equal(ring.status()?.phase, "Pending");
  });
});
