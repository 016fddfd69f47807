import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { ConfigError } from "../../model/config-error.ts";
import type { VolumeProvider, VolumeSource } from "./context.ts";
import { containerDevices } from "./devices.ts";

const sources: Record<string, VolumeSource> = {
  disk: { kind: "device", path: "/dev/sda", readonly: false },
  archive: { kind: "device", path: "/dev/sdb", readonly: true },
  directory: { kind: "path", path: "/data", readonly: false },
};

function devices(...names: readonly string[]): ReturnType<typeof containerDevices> {
  // reason: nothing else of the volumes is asked
  const volumes = { source: (_pod: unknown, name: string) => sources[name] } as unknown as VolumeProvider;
  const volumeDevices = names.map((name) => ({ name, devicePath: `/dev/${name}` }));
  return containerDevices({ volumes }, { pod: pod().container("app").build() }, { name: "app", volumeDevices });
}

test("a block volume is a device under the name that the container gave it", () => {
  assert.deepEqual(devices("disk", "archive"), [
    { containerPath: "/dev/disk", hostPath: "/dev/sda", permissions: "mrw" },
    { containerPath: "/dev/archive", hostPath: "/dev/sdb", permissions: "r" },
  ]);
  assert.deepEqual(devices(), []);
});

test("a directory as a device is a configuration error", () => {
  assert.throws(() => devices("directory"), ConfigError);
});
