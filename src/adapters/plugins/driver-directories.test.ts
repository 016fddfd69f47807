import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { SystemClock } from "../../lib/clock.ts";
import { type LogFields, silent } from "../../lib/log.ts";
import { DriverDirectories, type DriverFile } from "./driver-directories.ts";

/** Drivers below a directory that is not there yet. */
async function site(t: TestContext) {
  const base = mkdtempSync(join(tmpdir(), "drivers-"));
  const root = join(base, "exec");
  let drivers: ReadonlyMap<string, DriverFile> | undefined;
  let heard = (): void => undefined;
  const found = (now: ReadonlyMap<string, DriverFile>): void => {
    drivers = now;
    heard();
  };
  const stop = new AbortController();
  const warned: string[] = [];
  const log = {
    ...silent,
    warn: (_message: string, fields: LogFields = {}) => void warned.push(String(fields["error"])),
  };
  const running = new DriverDirectories({ clock: new SystemClock(), log, found }, root).run(stop);
  t.after(async () => {
    stop.abort(new Error("done"));
    await running;
    rmSync(base, { recursive: true });
  });
  const until = async (is: (now: ReadonlyMap<string, DriverFile>) => boolean): Promise<void> => {
    while (drivers === undefined || !is(drivers)) {
      await new Promise<void>((resolve) => {
        heard = resolve;
      });
    }
  };
  const install = (name: string, text = "#!/bin/sh\n"): void => {
    mkdirSync(join(root, name), { recursive: true });
    writeFileSync(join(root, name, name.split("~").at(-1) ?? ""), text, { mode: 0o755 });
  };
  return {
    root,
    until,
    install,
    warned,
    names: () => [...(drivers?.keys() ?? [])].sort(),
    get: (name: string) => drivers?.get(name),
  };
}

test("drivers are found when they are installed, replaced and removed, also if the directory comes later", async (t) => {
  const { root, until, install, names, get } = await site(t);
  await until((now) => now.size === 0);
  install("vendor~one");
  install("two");
  install(".hidden");
  mkdirSync(join(root, "empty"));
  await until((now) => now.size === 2);
  assert.deepEqual(names(), ["two", "vendor~one"]);
  assert.equal(get("vendor~one")?.path, join(root, "vendor~one/one"));
  const before = get("two")?.identity;
  writeFileSync(join(root, "two/.two.tmp"), "#!/bin/sh\nexit 1\n");
  chmodSync(join(root, "two/.two.tmp"), 0o755);
  renameSync(join(root, "two/.two.tmp"), join(root, "two/two"));
  await until((now) => now.get("two")?.identity !== before);
  rmSync(join(root, "vendor~one"), { recursive: true });
  await until((now) => !now.has("vendor~one"));
  assert.deepEqual(names(), ["two"]);
  rmSync(root, { recursive: true });
  await until((now) => now.size === 0);
  install("three");
  await until((now) => now.has("three"));
});

test("a driver whose program cannot be looked at keeps no other from being found, and is warned of once", async (t) => {
  const { root, until, install, names, warned } = await site(t);
  await until((now) => now.size === 0);
  mkdirSync(join(root, "broken"), { recursive: true });
  symlinkSync("broken", join(root, "broken/broken"));
  install("one");
  await until((now) => now.has("one"));
  install("two");
  await until((now) => now.has("two"));
  assert.deepEqual(names(), ["one", "two"]);
  assert.equal(warned.length, 1);
  assert.match(warned[0] ?? "", /ELOOP.*broken/);
  symlinkSync("one", join(root, "one/.next"));
  renameSync(join(root, "one/.next"), join(root, "one/one"));
  install("three");
  await until((now) => now.has("three"));
  assert.deepEqual(names(), ["one", "three", "two"], "what was found before stays");
});
