import assert from "node:assert/strict";
import { test } from "node:test";
import { stagedKind } from "../../test/support/staged-kind.ts";
import { VolumeMachine } from "../../test/support/volume-machine.ts";
import type { VolumeKind, VolumeStaging } from "./kind.ts";
import { VolumePaths } from "./paths.ts";
import { StageReferences } from "./stage-references.ts";

const DIRECTORY = "/root/pods/uid-a/volumes/test.example~staged/pv-1";

test("a volume that is torn down while it is read again is no user of its stage", async () => {
  const host = new VolumeMachine();
  // reason: this kind stages
  const kind = stagedKind({ calls: [], faults: new Map() }) as VolumeKind & { readonly staging: VolumeStaging };
  const metadata = { driverName: "fake", volumeHandle: "disk-1" };
  const stage = `/root/plugins/${kind.staging.directory(metadata)}`;
  await host.makeDir(DIRECTORY, 0o750);
  await host.replaceFile(`${DIRECTORY}/vol_data.json`, JSON.stringify(metadata));
  host.readFaults.set(`${DIRECTORY}/vol_data.json`, new Error("input/output error"));
  const references = new StageReferences({ host, paths: new VolumePaths("/root") }, kind);
  assert.equal(await references.isUsed(stage), true, "it may be");
  host.readFaults.clear();
  const { readFile } = host;
  host.readFile = async (path) => {
    const text = await readFile.call(host, path);
    host.readFile = readFile;
    await references.remove(DIRECTORY);
    return text;
  };
  assert.equal(await references.isUsed(stage), false);
});
