import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

interface LockEntry {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
}

const root = join(import.meta.dirname, "..");
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  readonly packages: Readonly<Record<string, LockEntry>>;
}; // npm's own file
const entries = Object.entries(lock.packages).filter(([path]) => path !== "");

/** Whether npm would install it where the agent runs: Linux with glibc on x86-64 or arm64. */
function isForUs({ os, cpu, libc }: LockEntry): boolean {
  const fits = (list: readonly string[] | undefined, ...ours: string[]): boolean =>
    list === undefined || ours.some((one) => list.includes(one));
  return fits(os, "linux") && fits(cpu, "x64", "arm64") && fits(libc, "glibc");
}

test("every package that is installed here is locked to its content", () => {
  const without = entries.filter(([, entry]) => entry.integrity === undefined && isForUs(entry)).map(([path]) => path);
  assert.deepEqual(without, []);
});

test("only optional packages of other platforms may lack the hash of their content", () => {
  const without = entries.filter(([, entry]) => entry.integrity === undefined && entry.optional !== true);
  assert.deepEqual(without, []);
  for (const [path, { integrity }] of entries) {
    if (integrity !== undefined) assert.match(integrity, /^sha512-[A-Za-z0-9+/]{86}==$/, path);
  }
});

test("no package brings a script that npm runs, and no address of a registry is locked", () => {
  assert.match(readFileSync(join(root, ".npmrc"), "utf8"), /^ignore-scripts=true$/m);
  assert.deepEqual(
    entries.filter(([, { resolved }]) => resolved !== undefined),
    [],
  );
});
