import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mountNamespace, runInMountNamespace } from "../../../test/support/mount-namespace.ts";
import { SystemClock } from "../../lib/clock.ts";
import { DeviceMounts } from "./device-mount.ts";
import { exec } from "./exec.ts";
import { type HostError, LinuxHost } from "./index.ts";
import { MountCommands } from "./mount-commands.ts";
import { readMountTable } from "./mount-table.ts";
import { LinuxVolumeHost } from "./volume-host.ts";

// Mounts in a namespace of its own; the loop devices are the machine's and are given back.
const skip =
  (process.getuid?.() !== 0 && "needs root") ||
  (!existsSync("/dev/loop-control") && "this machine has no loop devices") ||
  (spawnSync("mkfs.ext4", ["-V"]).error !== undefined && "mkfs.ext4 is not installed");

if (mountNamespace() === undefined) {
  test("block devices in a mount namespace of their own", { skip }, () => {
    runInMountNamespace(import.meta.url);
  });
} else {
  defineTests();
}

interface Scene {
  readonly device: string;
  /** What is behind the device. */
  readonly image: string;
  /** A place to mount on. */
  target(name: string): string;
}

async function within(work: (scene: Scene) => Promise<void>): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), "device-"));
  const image = join(base, "image");
  writeFileSync(image, "");
  execFileSync("truncate", ["--size=16M", image]);
  const device = execFileSync("losetup", ["--find", "--show", image], { encoding: "utf8" }).trim();
  const target = (name: string): string => {
    mkdirSync(join(base, name), { recursive: true });
    return join(base, name);
  };
  try {
    await work({ device, image, target });
  } finally {
    const targets = readMountTable().map((entry) => entry.target);
    for (const path of targets.reverse()) if (path.startsWith(base)) execFileSync("umount", [path]);
    execFileSync("losetup", ["--detach", device]);
    rmSync(base, { recursive: true });
  }
}

function defineTests(): void {
  const clock = new SystemClock();
  const layersAt = (path: string): number => readMountTable().filter(({ target }) => target === path).length;
  const commands = new MountCommands({
    run: (command, options) => exec(clock, command, options),
    layersAt,
    isElsewhere: () => false,
    flagsAt: () => [],
  });
  const mounts = new DeviceMounts(clock, commands);
  const never = { signal: new AbortController().signal };
  const typeAt = (path: string): string | undefined => readMountTable().findLast(({ target }) => target === path)?.type;
  const refused = (words: RegExp) => (error: HostError) => words.test(error.message);

  test("a blank device gets ext4 once, and its content stays for the next mount", () =>
    within(async ({ device, target }) => {
      const first = target("first");
      await mounts.mount({ device, target: first, mayFormat: true }, never);
      assert.equal(typeAt(first), "ext4");
      writeFileSync(join(first, "precious"), "keep");
      execFileSync("umount", [first]);
      const second = target("second");
      await mounts.mount({ device, target: second, fsType: "ext4", mayFormat: true }, never);
      assert.equal(readFileSync(join(second, "precious"), "utf8"), "keep");
    }));

  test("two pods at the same time: one filesystem, seen by both", () =>
    within(async ({ device, target }) => {
      const places = [target("a"), target("b"), target("c")];
      await Promise.all(places.map((place) => mounts.mount({ device, target: place, mayFormat: true }, never)));
      writeFileSync(join(places[0] ?? "", "file"), "of all");
      for (const place of places) assert.equal(readFileSync(join(place, "file"), "utf8"), "of all");
    }));

  const keepers: [string, (scene: Scene) => void, { fsType?: string; mayFormat?: boolean }, RegExp][] = [
    [
      "with data of no known kind",
      ({ image }) => {
        const file = openSync(image, "r+");
        writeSync(file, "a database without a filesystem", 70_000);
        closeSync(file);
      },
      {},
      /not blank: refusing to format it/,
    ],
    [
      "with another filesystem",
      ({ device }) => void execFileSync("mkfs.ext4", ["-q", device]),
      { fsType: "xfs" },
      /has filesystem ext4, not xfs/,
    ],
    [
      "with partitions",
      ({ image }) => {
        // A partition table of the old kind: one Linux partition from sector 1 on.
        const table = Buffer.alloc(512);
        table.set([0, 0, 2, 0, 0x83, 0, 3, 0, 1, 0, 0, 0, 0, 8, 0, 0], 446);
        table.set([0x55, 0xaa], 510);
        const file = openSync(image, "r+");
        writeSync(file, table, 0, table.length, 0);
        closeSync(file);
      },
      {},
      /has a partition table \(dos\)/,
    ],
    [
      "that may only be read",
      () => undefined,
      { mayFormat: false },
      /has no filesystem and must not be formatted: it is read-only/,
    ],
    ["for a kind with a flag in its name", () => undefined, { fsType: "ext4 -o x" }, /is not a filesystem type/],
  ];
  for (const [name, prepare, wish, words] of keepers) {
    test(`a device ${name} is refused and keeps every byte`, () =>
      within(async (scene) => {
        prepare(scene);
        execFileSync("sync", [scene.device]);
        const before = readFileSync(scene.image);
        const request = { device: scene.device, target: scene.target("t"), mayFormat: true, ...wish };
        await assert.rejects(mounts.mount(request, never), refused(words));
        execFileSync("sync", [scene.device]);
        assert.ok(readFileSync(scene.image).equals(before));
        assert.equal(typeAt(scene.target("t")), undefined);
      }));
  }

  test("a filesystem with errors is repaired before it is mounted to be written, and mount options reach it", () =>
    within(async ({ device, target }) => {
      execFileSync("mkfs.ext4", ["-q", device]);
      // Marked as having errors: fsck looks at it, and clears the mark.
      execFileSync("debugfs", ["-w", "-R", "ssv state 2", device], { stdio: "ignore" });
      const place = target("t");
      await mounts.mount({ device, target: place, mayFormat: true, options: ["noatime"] }, never);
      assert.ok(readMountTable().some((entry) => entry.target === place && entry.options.includes("noatime")));
      const state = /Filesystem state:\s+(.*)/.exec(
        execFileSync("dumpe2fs", ["-h", device], { encoding: "utf8" }),
      )?.[1];
      assert.equal(state, "clean");
    }));

  test("a filesystem that cannot be repaired without a decision is not mounted", () =>
    within(async ({ device, image, target }) => {
      execFileSync("mkfs.ext4", ["-q", device]);
      execFileSync("debugfs", ["-w", "-R", "ssv state 2", device], { stdio: "ignore" });
      execFileSync("debugfs", ["-w", "-R", "clri <2>", device], { stdio: "ignore" });
      execFileSync("sync", [device]);
      const before = readFileSync(image);
      const request = { device, target: target("t"), mayFormat: true };
      await assert.rejects(mounts.mount(request, never), refused(/'fsck' found errors on device .* could not correct/));
      assert.equal(typeAt(target("t")), undefined);
      assert.equal(readFileSync(image).length, before.length);
    }));

  test("a device is held as long as its filesystem is mounted", () =>
    within(async ({ device, target }) => {
      const host = new LinuxVolumeHost(new LinuxHost({ clock }), clock);
      assert.equal(await host.isDeviceHeld(device, never), false);
      const place = target("t");
      await mounts.mount({ device, target: place, mayFormat: true }, never);
      assert.equal(await host.isDeviceHeld(device, never), true);
      execFileSync("umount", [place]);
      assert.equal(await host.isDeviceHeld(device, never), false);
      assert.equal(await host.isDeviceHeld("/dev/no-such-disk", never), false);
    }));

  test("a missing device is an error that names it", () =>
    within(async ({ target }) => {
      const request = { device: "/dev/no-such-disk", target: target("t"), mayFormat: true };
      await assert.rejects(mounts.mount(request, never), refused(/(read|probe) .*no-such-disk/));
    }));
}
