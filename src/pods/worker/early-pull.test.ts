import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { RuntimeError } from "../../adapters/runtime/port.ts";

/** A ring whose sandboxes take this long, and pods that need an image each. */
function setUp(names: readonly string[], { sandboxMs, pullMs }: { sandboxMs: number; pullMs: number }) {
  const ring = new FakeRing();
  for (const name of names) ring.runtime.image(`${name}:1`, { state: "pullable", pullMs });
  ring.runtime.control.delay("runSandbox", sandboxMs);
  const pods = names.map((name) =>
    pod(name)
      .container("app", { image: `${name}:1` })
      .build(),
  );
  return { ring, pods };
}

function reasons(ring: FakeRing): string[] {
  return ring.journal.events(0).map(({ reason }) => reason);
}

describe("the image of a pod's first container", () => {
  test("is pulled while its sandbox is created, once", async () => {
    const { ring, pods } = setUp(["one"], { sandboxMs: 3000, pullMs: 4000 });
    await ring.wantAsIs(...pods);
    await ring.clock.advance(4000);
    assert.equal(ring.status("one")?.phase, "Running");
    assert.equal(ring.runtime.control.count("pullImage"), 1);
    assert.deepEqual(reasons(ring), ["Pulling", "Pulled", "Created", "Started"]);
  });

  test("is pulled in the order in which pods came, whoever has a sandbox", async () => {
    const names = Array.from({ length: 12 }, (_, index) => `p${index}`);
    const { ring, pods } = setUp(names, { sandboxMs: 100, pullMs: 1000 });
    await ring.wantAsIs(...pods);
    await ring.clock.advance(20_000);
    const pulled = ring.journal.events(0).filter(({ reason }) => reason === "Pulled");
    assert.deepEqual(
      pulled.map(({ message }) => /"(p\d+):1"/.exec(message)?.[1]),
      names,
    );
    assert.ok(names.every((name) => ring.status(name)?.phase === "Running"));
  });

  test("does not keep the slot of the start lane: other pods start while it is pulled", async () => {
    const { ring, pods } = setUp(["slow"], { sandboxMs: 10, pullMs: 600_000 });
    const others = Array.from({ length: 20 }, (_, index) => pod(`other${index}`).container("app").build());
    ring.runtime.image("app:1", { state: "present" });
    await ring.wantAsIs(...pods, ...others);
    await ring.clock.advance(5000);
    assert.equal(ring.status("slow")?.phase, "Pending");
    assert.ok(others.every(({ metadata }) => ring.status(metadata.name ?? "")?.phase === "Running"));
  });

  test("is not pulled on when the sandbox fails, and from then on only after the sandbox", async () => {
    const { ring, pods } = setUp(["one"], { sandboxMs: 100, pullMs: 1000 });
    ring.runtime.control.fail("runSandbox", new RuntimeError("Unknown", "no such luck"), 3);
    await ring.wantAsIs(...pods);
    await ring.clock.advance(120_000);
    assert.equal(ring.status("one")?.phase, "Running");
    const calls = ring.runtime.control.calls.map(({ method }) => method);
    const order = calls.filter((method) => method === "pullImage" || method === "runSandbox");
    assert.deepEqual(order, [
      ...["runSandbox", "pullImage"],
      ...["runSandbox", "runSandbox", "runSandbox", "pullImage"],
    ]);
    assert.deepEqual(
      reasons(ring).filter((reason) => reason.startsWith("Pull")),
      ["Pulling", "Pulled"],
    );
  });

  test("that cannot be pulled fails the container, not the sandbox", async () => {
    const { ring, pods } = setUp(["one"], { sandboxMs: 3000, pullMs: 0 });
    ring.runtime.control.fail("pullImage", new RuntimeError("NotFound", "no such image"));
    await ring.wantAsIs(...pods);
    await ring.clock.advance(3000);
    const state = ring.status("one")?.containerStatuses?.[0]?.state;
    assert.equal(state?.waiting?.reason, "ImagePullBackOff");
    assert.equal(ring.runtime.control.count("runSandbox"), 1);
  });

  test("is not pulled on when the pod is deleted before its sandbox", async () => {
    const { ring, pods } = setUp(["one"], { sandboxMs: 3000, pullMs: 60_000 });
    await ring.wantAsIs(...pods);
    await ring.clock.advance(1000);
    await ring.wantAsIs();
    await ring.clock.advance(10_000);
    assert.equal(ring.status("one"), undefined);
    assert.deepEqual(reasons(ring), ["Pulling"]);
  });
});
