import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DeviceLocks } from "./device-locks.ts";

const never = { signal: new AbortController().signal };

function site(backing: Readonly<Record<string, string>>) {
  const dir = mkdtempSync(join(tmpdir(), "kts-loops-"));
  for (const [name, text] of Object.entries(backing)) {
    mkdirSync(join(dir, name, "loop"), { recursive: true });
    writeFileSync(join(dir, name, "loop/backing_file"), text);
  }
  mkdirSync(join(dir, "sda"));
  mkdirSync(join(dir, "loop9"));
  const commands: string[] = [];
  let failure: string | undefined;
  const run = async (command: readonly string[]) => {
    commands.push(command.join(" "));
    return failure === undefined ? { code: 0, stderr: "" } : { code: 1, stderr: failure };
  };
  const locks = new DeviceLocks(run, dir);
  return {
    locks,
    commands,
    fail: (text: string) => void (failure = text),
    close: () => rmSync(dir, { recursive: true }),
  };
}

test("a device is locked once, and unlocked by the loop device that holds it", async () => {
  const { locks, commands, close } = site({ loop0: "/other\n", loop1: "/a/dev/uid (deleted)\n" });
  await locks.lock("/a/dev/uid", never);
  assert.deepEqual(commands, []);
  await locks.lock("/b/dev/uid", never);
  await locks.unlock("/a/dev/uid", never);
  assert.deepEqual(commands, ["losetup --find /b/dev/uid", "losetup --detach /dev/loop1"]);
  close();
});

test("one that is not locked is unlocked already; a failure says what was attempted", async () => {
  const { locks, commands, fail, close } = site({});
  await locks.unlock("/a/dev/uid", never);
  assert.deepEqual(commands, []);
  fail("cannot find an unused loop device");
  await assert.rejects(locks.lock("/a/dev/uid", never), /losetup --find \/a\/dev\/uid: cannot find an unused/);
  close();
});
