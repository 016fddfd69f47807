import assert from "node:assert/strict";
import { test } from "node:test";
import { creation } from "../../../../test/support/creation.ts";
import { pod } from "../../../../test/support/pods.ts";
import { ConfigError } from "../../../model/config-error.ts";
import type { VolumeProvider, VolumeSource } from "../context.ts";
import { blockDevices } from "./block-devices.ts";
import type { Contribution } from "./contributor.ts";
import { mergeContributions } from "./merge.ts";

const sources: Record<string, VolumeSource> = {
  disk: { kind: "device", path: "/dev/sda", readonly: false },
  archive: { kind: "device", path: "/dev/sdb", readonly: true },
  directory: { kind: "path", path: "/data", readonly: false },
};

async function devices(...names: readonly string[]): Promise<Contribution["devices"]> {
  // reason: nothing else of the volumes is asked
  const volumes = { source: (_pod: unknown, name: string) => sources[name] } as unknown as VolumeProvider;
  const volumeDevices = names.map((name) => ({ name, devicePath: `/dev/${name}` }));
  const of = creation(pod().container("app", { volumeDevices }).build());
  return (await blockDevices({ volumes }).contribute(of, mergeContributions([]))).devices;
}

test("a block volume is a device under the name that the container gave it", async () => {
  assert.deepEqual(await devices("disk", "archive"), [
    { containerPath: "/dev/disk", hostPath: "/dev/sda", permissions: "mrw" },
    { containerPath: "/dev/archive", hostPath: "/dev/sdb", permissions: "r" },
  ]);
  assert.deepEqual(await devices(), []);
});

test("a directory as a device is a configuration error", async () => {
  await assert.rejects(devices("directory"), ConfigError);
});
