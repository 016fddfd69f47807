import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { VolumeScene } from "../../../test/support/volumes.ts";
import type { PathKind } from "../../adapters/host/path-kind.ts";
import type { Volume } from "../../model/generated/types.ts";

describe("hostPath", () => {
  const at = (type?: string): Volume => ({ name: "host", hostPath: { path: "/data/x", ...(type && { type }) } });

  test("is the path itself, which is the user's", async () => {
    const scene = new VolumeScene([at()]);
    await scene.prepare();
    assert.deepEqual(scene.volumes.source(scene.web, "host"), {
      kind: "path",
      path: "/data/x",
      readonly: false,
      isUsers: true,
    });
  });

  const accepted: [string | undefined, PathKind | undefined, string[]][] = [
    [undefined, undefined, []],
    ["DirectoryOrCreate", undefined, ["makeDir /data/x"]],
    ["DirectoryOrCreate", "directory", []],
    ["FileOrCreate", undefined, ["makeFile /data/x"]],
    ["FileOrCreate", "file", []],
    ["Directory", "directory", []],
    ["File", "file", []],
    ["Socket", "socket", []],
    ["CharDevice", "charDevice", []],
    ["BlockDevice", "blockDevice", []],
  ];
  for (const [type, found, want] of accepted) {
    test(`type "${type ?? ""}" takes ${found ?? "nothing"} at the path`, async () => {
      const scene = new VolumeScene([at(type)]);
      if (found !== undefined) scene.machine.kinds.set("/data/x", found);
      await scene.prepare();
      assert.deepEqual(scene.machine.done.slice(1), want);
    });
  }

  test("what it creates has the modes 0755 and 0644", async () => {
    for (const [type, mode] of [
      ["DirectoryOrCreate", 0o755],
      ["FileOrCreate", 0o644],
    ] as const) {
      const scene = new VolumeScene([at(type)]);
      await scene.prepare();
      assert.equal(scene.machine.modes.get("/data/x"), mode);
    }
  });

  const refused: [string, PathKind | undefined, string][] = [
    ["Directory", undefined, "/data/x is not a directory but nothing"],
    ["Directory", "file", "/data/x is not a directory but a file"],
    ["DirectoryOrCreate", "file", "/data/x is not a directory but a file"],
    ["File", "directory", "/data/x is not a file but a directory"],
    ["FileOrCreate", "directory", "/data/x is not a file but a directory"],
    ["Socket", "file", "/data/x is not a socket file but a file"],
    ["CharDevice", "blockDevice", "/data/x is not a character device but a block device"],
    ["BlockDevice", undefined, "/data/x is not a block device but nothing"],
    ["Directroy", undefined, 'unknown hostPath.type "Directroy"'],
  ];
  for (const [type, found, why] of refused) {
    test(`type "${type}" refuses ${found ?? "nothing"} at the path and makes nothing there`, async () => {
      const scene = new VolumeScene([at(type)]);
      if (found !== undefined) scene.machine.kinds.set("/data/x", found);
      const detail = await scene.refusal();
      assert.ok(detail.includes(`hostPath type check failed: ${why}`), detail);
      assert.ok(scene.events[0]?.startsWith(`FailedMount: MountVolume.SetUp failed for volume "host" : hostPath type`));
      assert.equal(scene.machine.modes.has("/data/x"), false);
    });
  }

  test("a path that appears is taken at the next attempt", async () => {
    const scene = new VolumeScene([at("Directory")]);
    const prepared = scene.prepare();
    await scene.clock.advance(400);
    scene.machine.kinds.set("/data/x", "directory");
    await scene.clock.advance(100);
    await prepared;
  });

  test("is never removed, whatever its directory holds", async () => {
    const scene = new VolumeScene([at("DirectoryOrCreate")]);
    await scene.prepare();
    scene.machine.done.length = 0;
    await scene.volumes.teardown("uid-of-web", scene.never);
    assert.deepEqual(scene.machine.done, []);
    assert.equal(scene.machine.modes.has("/data/x"), true);
  });

  test("gets no group: it is not the pod's", async () => {
    const scene = new VolumeScene([at()]);
    const { spec } = scene.web;
    await scene.prepare({ ...scene.web, spec: { ...spec, securityContext: { fsGroup: 7 } } });
    assert.equal(scene.machine.groups.size, 0);
  });
});
