import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { growFilesystem } from "./grow-filesystem.ts";

const never = { signal: new AbortController().signal };
const place = { device: "/dev/sdb", mountPath: "/m" };

function machine(format: string, failure?: string) {
  const commands: string[] = [];
  const run = async (command: readonly string[]) => {
    commands.push(command.join(" "));
    if (command[0] === "blkid") return { code: format === "" ? 2 : 0, stdout: `${format}\n`, stderr: "" };
    return failure === undefined ? { code: 0, stdout: "", stderr: "" } : { code: 1, stdout: "", stderr: failure };
  };
  return { commands, run };
}

describe("a filesystem whose device has grown", () => {
  for (const [format, want] of [
    ["ext4", "resize2fs /dev/sdb"],
    ["ext3", "resize2fs /dev/sdb"],
    ["xfs", "xfs_growfs -d /m"],
    ["btrfs", "btrfs filesystem resize max /m"],
    ["", undefined],
  ] as const) {
    test(`${format || "none"}: ${want ?? "nothing is done"}`, async () => {
      const { commands, run } = machine(format);
      await growFilesystem(place, { run }, never);
      assert.deepEqual(commands.slice(1), want === undefined ? [] : [want]);
    });
  }

  test("of another kind is refused, and a failure has the command's words", async () => {
    await assert.rejects(growFilesystem(place, machine("vfat"), never), /resize of format vfat is not supported/);
    const failed = growFilesystem(place, machine("ext4", "Permission denied"), never);
    await assert.rejects(
      failed,
      /resize of device \/dev\/sdb failed: exit status 1\. resize2fs output: Permission denied/,
    );
  });
});
