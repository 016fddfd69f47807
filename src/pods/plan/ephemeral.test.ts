import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";

const plain = pod("web").container("app").build();
const debug = { name: "debug", image: "debug:1", targetContainerName: "app" };
const debugged = { ...plain, spec: { ...plain.spec, ephemeralContainers: [debug] } };

describe("an ephemeral container", () => {
  test("joins a running pod, sees its target's processes, and leaves the rest alone", async () => {
    const ring = new FakeRing();
    await ring.want(plain);
    const [app] = await ring.containers();
    await ring.want(debugged);
    const now = await ring.containers();
    assert.deepEqual(now.map(({ name, state }) => `${name} ${state}`).sort(), ["app running", "debug running"]);
    assert.equal(now.find(({ name }) => name === "app")?.id, app?.id);
    const made = ring.runtime.configOf(now.find(({ name }) => name === "debug")?.id ?? "");
    assert.deepEqual(made?.linux.security.namespaces, { network: "pod", ipc: "pod", pid: "target", targetId: app?.id });
    const shown = ring.view.explain("uid-of-web")?.containers.find(({ kind }) => kind === "ephemeral");
    assert.deepEqual([shown?.name, shown?.state], ["debug", "running"]);
    const status = ring.status()?.ephemeralContainerStatuses?.[0];
    assert.ok(status?.state?.running);
    assert.equal("started" in (status ?? {}), false);
    assert.equal(ring.status()?.conditions?.find(({ type }) => type === "Ready")?.status, "True");
  });

  test("is not restarted when it has terminated, and reports its exit code", async () => {
    const ring = new FakeRing({ debug: { exitAfterMs: 1000, exitCode: 3 } });
    await ring.want(debugged);
    await ring.clock.advance(600_000);
    assert.equal((await ring.containers()).filter(({ name }) => name === "debug").length, 1);
    assert.equal(ring.status()?.ephemeralContainerStatuses?.[0]?.state?.terminated?.exitCode, 3);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("whose target does not exist waits with the reason", async () => {
    const ring = new FakeRing();
    const lost = { ...debug, targetContainerName: "nobody" };
    await ring.want({ ...plain, spec: { ...plain.spec, ephemeralContainers: [lost] } });
    const waiting = ring.status()?.ephemeralContainerStatuses?.[0]?.state?.waiting;
    assert.deepEqual(waiting, {
      reason: "CreateContainerConfigError",
      message: "unable to find target container nobody",
    });
    assert.equal(ring.status()?.phase, "Running");
  });

  test("is stopped with its pod", async () => {
    const ring = new FakeRing();
    await ring.want(debugged);
    await ring.want();
    await ring.clock.advance(60_000);
    assert.deepEqual(await ring.containers(), []);
  });
});
