import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { Pod, Volume } from "../../model/generated/types.ts";

const env = [{ name: "TOKEN", valueFrom: { fileKeyRef: { volumeName: "v", path: "conf/env", key: "A" } } }];
const web = (volume: Partial<Volume>): Pod =>
  pod("web")
    .container("app", { env })
    .with({ volumes: [{ name: "v", ...volume }] })
    .build();

describe("a variable from a file in a volume", () => {
  test("is set once the file exists, and is waited for until then", async () => {
    const ring = new FakeRing();
    await ring.want(web({ emptyDir: {} }));
    const waiting = ring.status()?.containerStatuses?.[0]?.state?.waiting;
    assert.equal(waiting?.reason, "CreateContainerConfigError");
    assert.equal(waiting?.message, 'file "conf/env" of volume "v" not found');
    ring.files.entries.set("/volumes/v/conf/env", "A='1'\n");
    await ring.clock.advance(20_000);
    assert.equal(ring.status()?.phase, "Running");
    const [{ id } = { id: "" }] = await ring.containers();
    assert.deepEqual(ring.runtime.configOf(id)?.envs, [{ name: "TOKEN", value: "1" }]);
  });

  test("comes only from an emptyDir: no other volume is the pod's own", async () => {
    const ring = new FakeRing();
    ring.files.entries.set("/volumes/v/conf/env", "A='1'\n");
    await ring.want(web({ hostPath: { path: "/etc" } }));
    const waiting = ring.status()?.containerStatuses?.[0]?.state?.waiting;
    assert.equal(waiting?.message, 'env file: volume "v" is not an emptyDir');
  });
});
