import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CsiScene } from "../../test/support/csi-scene.ts";
import type { Pod } from "../model/generated/types.ts";

const MOUNT = "/root/pods/uid-of-a/volumes/kubernetes.io~csi/pv-1/mount";

async function sceneWithUser(): Promise<{ scene: CsiScene; user: Pod }> {
  const scene = await new CsiScene({ driver: { fsGroupPolicy: "File" } }).register();
  const user = scene.user("a");
  return { scene, user: { ...user, spec: { ...user.spec, securityContext: { fsGroup: 7 } } } };
}

describe("a volume whose files were being given to the group of its pod when the agent was killed", () => {
  test("is not ready for the next agent, which gives them to it before a container starts", async () => {
    const { scene, user } = await sceneWithUser();
    const { changeGroup } = scene.machine;
    scene.machine.changeGroup = () => new Promise(() => undefined);
    void scene.volumes.prepare(user, scene.never);
    await scene.clock.advance(1000);
    assert.ok(scene.machine.mounts.has(MOUNT));
    await scene.restart();
    scene.machine.changeGroup = changeGroup;
    scene.volumes.wanted([user]);
    await scene.clock.advance(0);
    await scene.prepare(user);
    assert.deepEqual(scene.machine.groups.get(MOUNT), { gid: 7, onlyOnMismatch: false });
  });

  test("has nothing left of that once it is done: the next agent leaves it alone", async () => {
    const { scene, user } = await sceneWithUser();
    await scene.prepare(user);
    await scene.restart();
    scene.machine.groups.clear();
    const before = scene.csi.calls.length;
    scene.volumes.wanted([user]);
    await scene.clock.advance(0);
    await scene.prepare(user);
    assert.deepEqual([scene.machine.groups.size, scene.csi.calls.length], [0, before]);
  });

  test("is tried again by the same agent after a failure", async () => {
    const { scene, user } = await sceneWithUser();
    const { changeGroup } = scene.machine;
    scene.machine.changeGroup = () => Promise.reject(new Error("input/output error"));
    assert.match(await scene.refusal(user), /input\/output error/);
    scene.machine.changeGroup = changeGroup;
    await scene.restart();
    scene.volumes.wanted([user]);
    await scene.clock.advance(0);
    await scene.prepare(user);
    assert.equal(scene.machine.groups.get(MOUNT)?.gid, 7);
  });
});
