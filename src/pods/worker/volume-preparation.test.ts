import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { RuntimeError } from "../../adapters/runtime/port.ts";

const web = pod("web")
  .container("app")
  .with({ volumes: [{ name: "v", emptyDir: {} }] })
  .build();

/** Volumes that are ready, or fail, when the test says so. */
class HeldVolumes {
  asked = 0;
  aborted = 0;
  private settle: ((error?: Error) => void) | undefined;

  constructor(ring: FakeRing) {
    ring.prepareVolumes = (_pod, signal) =>
      new Promise((resolve, reject) => {
        this.asked++;
        const onAbort = (): void => {
          this.aborted++;
          reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
        };
        signal.addEventListener("abort", onAbort);
        this.settle = (error) => {
          signal.removeEventListener("abort", onAbort);
          if (error === undefined) resolve();
          else reject(error);
        };
      });
  }

  end(error?: Error): void {
    this.settle?.(error);
  }
}

function calls(ring: FakeRing, method: string): number {
  return ring.runtime.control.calls.filter((call) => call.method === method).length;
}

describe("volumes and the sandbox", () => {
  test("are prepared side by side when everything is available; no container is created before the volumes are", async () => {
    const ring = new FakeRing();
    const volumes = new HeldVolumes(ring);
    await ring.want(web);
    assert.deepEqual([calls(ring, "runSandbox"), calls(ring, "createContainer")], [1, 0]);
    volumes.end();
    await ring.clock.advance(0);
    assert.equal(ring.status()?.phase, "Running");
    assert.deepEqual([volumes.asked, volumes.aborted], [1, 0]);
  });

  test("give their groups to the sandbox and to the containers", async () => {
    const ring = new FakeRing();
    ring.volumeGroups = [1234];
    await ring.want(web);
    const { sandboxes, containers } = ring.runtime.peek();
    const groups = [
      ring.runtime.sandboxConfigOf(sandboxes[0]?.id ?? "")?.linux.security.supplementalGroups,
      ring.runtime.configOf(containers[0]?.id ?? "")?.linux.security.supplementalGroups,
    ];
    assert.deepEqual(groups, [[1234], [1234]]);
  });

  test("a pod whose volumes cannot be mounted yet gets no sandbox", async () => {
    const ring = new FakeRing();
    ring.volumesAtHand = false;
    const volumes = new HeldVolumes(ring);
    await ring.want(web);
    await ring.clock.advance(60_000);
    assert.equal(calls(ring, "runSandbox"), 0);
    volumes.end();
    await ring.clock.advance(0);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("volumes that fail beside the sandbox are retried, in the same sandbox", async () => {
    const ring = new FakeRing();
    const volumes = new HeldVolumes(ring);
    await ring.want(web);
    volumes.end(new Error("no token"));
    await ring.clock.advance(1000);
    assert.equal(volumes.asked, 2);
    volumes.end();
    await ring.clock.advance(0);
    assert.equal(ring.status()?.phase, "Running");
    assert.equal(calls(ring, "runSandbox"), 1);
  });

  test("a failed sandbox aborts the preparation of volumes before it is retried", async () => {
    const ring = new FakeRing();
    const volumes = new HeldVolumes(ring);
    ring.runtime.control.fail("runSandbox", new RuntimeError("Unknown", "no network"));
    await ring.want(web);
    assert.deepEqual([volumes.asked, volumes.aborted], [1, 1]);
    await ring.clock.advance(1000);
    assert.equal(volumes.asked, 2);
    volumes.end();
    await ring.clock.advance(0);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("a pod that waits for its volumes does not block others", async () => {
    const ring = new FakeRing();
    const volumes = new HeldVolumes(ring);
    const others = Array.from({ length: 20 }, (_, at) => pod(`other-${at}`).container("app").build());
    const waiting = Array.from({ length: 20 }, (_, at) =>
      pod(`waits-${at}`)
        .container("app")
        .with({ volumes: web.spec.volumes ?? [] })
        .build(),
    );
    await ring.want(...waiting, ...others);
    assert.equal(volumes.asked, 20);
    for (const { metadata } of others) assert.equal(ring.status(metadata.name)?.phase, "Running");
  });

  test("a deleted pod does not wait for its volumes, and its sandbox is removed", async () => {
    const ring = new FakeRing();
    const volumes = new HeldVolumes(ring);
    await ring.want(web);
    await ring.want();
    await ring.clock.advance(1000);
    assert.equal(volumes.aborted, 1);
    assert.deepEqual(await ring.runtime.listSandboxes({}, { signal: new AbortController().signal }), []);
    assert.equal(calls(ring, "createContainer"), 0);
  });
});
