import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { Pod } from "../../model/generated/types.ts";

const web = (image: string, more: Partial<Pod["spec"]> = {}): Pod =>
  pod("web").container("app", { image }).with(more).build();

function ready(ring: FakeRing): string | undefined {
  return ring.status()?.conditions?.find(({ type }) => type === "Ready")?.status;
}

describe("a container that is replaced and cannot start", () => {
  test("is shown as waiting, and the pod as not ready, when its image does not exist", async () => {
    const ring = new FakeRing();
    await ring.want(web("app:1"));
    assert.equal(ready(ring), "True");
    await ring.wantAsIs(web("nowhere:1"));
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.containerStatuses?.[0]?.state?.waiting?.reason, "ImagePullBackOff");
    assert.equal(ready(ring), "False");
    assert.equal(ring.status()?.phase, "Running");
  });

  test("comes up once its image exists", async () => {
    const ring = new FakeRing();
    await ring.want(web("app:1"));
    await ring.wantAsIs(web("nowhere:1"));
    ring.runtime.image("nowhere:1");
    await ring.clock.advance(10_000);
    assert.equal(ready(ring), "True");
    assert.equal(ring.status()?.containerStatuses?.[0]?.restartCount, 1);
  });

  test("ends a pod that never restarts, as in Kubernetes", async () => {
    const ring = new FakeRing();
    await ring.want(web("app:1", { restartPolicy: "Never" }));
    await ring.wantAsIs(web("nowhere:1", { restartPolicy: "Never" }));
    await ring.clock.advance(60_000);
    assert.equal(ring.status()?.phase, "Failed");
    assert.equal(ready(ring), "False");
  });

  test("is shown as terminated while its volumes are waited for in vain", async () => {
    const ring = new FakeRing();
    const volumes = [{ name: "data", emptyDir: {} }];
    await ring.want(web("app:1", { volumes }));
    ring.prepareVolumes = () => Promise.reject(new Error("no disk"));
    await ring.want(web("app:2", { volumes }));
    await ring.clock.advance(5000);
    assert.equal(ready(ring), "False");
    assert.equal(ring.status()?.phase, "Running");
    ring.prepareVolumes = () => Promise.resolve();
    await ring.clock.advance(30_000);
    assert.equal(ready(ring), "True");
  });

  test("is no terminal phase while its volumes are waited for, though the pod never restarts", async () => {
    const ring = new FakeRing();
    const spec = { volumes: [{ name: "data", emptyDir: {} }], restartPolicy: "Never" };
    await ring.want(web("app:1", spec));
    ring.prepareVolumes = () => Promise.reject(new Error("no disk"));
    await ring.want(web("app:2", spec));
    await ring.clock.advance(5000);
    assert.equal(ring.status()?.phase, "Running");
    ring.prepareVolumes = () => Promise.resolve();
    await ring.clock.advance(30_000);
    assert.equal(ready(ring), "True");
  });
});
