import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { volumeHostContract } from "../../../test/contract/volume-host-suite.ts";
import { SystemClock } from "../../lib/clock.ts";
import { LinuxHost } from "./index.ts";
import { readMountTable } from "./mount-table.ts";
import { LinuxVolumeHost } from "./volume-host.ts";

// Everything is mounted in a namespace of its own, which goes with the process, whatever happens.
const INSIDE = "KUBELET_TEST_MOUNT_NAMESPACE";

if (process.env[INSIDE] === undefined) {
  test("the contract of volumes on Linux", { skip: process.getuid?.() !== 0 && "needs root" }, () => {
    const env: NodeJS.ProcessEnv = { ...process.env, [INSIDE]: "1" };
    delete env.NODE_TEST_CONTEXT;
    const command = ["--mount", "--propagation", "private", process.execPath, ...process.execArgv.filter(isLoader)];
    const inner = spawnSync("unshare", [...command, fileURLToPath(import.meta.url)], { env, encoding: "utf8" });
    assert.equal(inner.status, 0, `${inner.error ?? ""}\n${inner.stdout}\n${inner.stderr}`);
    assert.match(inner.stdout, /^# pass [1-9]|ℹ pass [1-9]/m);
  });
} else {
  const clock = new SystemClock();
  volumeHostContract("Linux", async () => {
    const base = mkdtempSync(join(tmpdir(), "volume-host-"));
    return {
      host: new LinuxVolumeHost(new LinuxHost({ clock }), clock),
      base,
      read: (directory) => read(directory, ""),
      put: async (path) => writeFileSync(path, ""),
      exists: existsSync,
      close: async () => {
        const targets = readMountTable().map(({ target }) => target);
        for (const target of targets.reverse()) {
          if (target.startsWith(`${base}/`)) execFileSync("umount", ["--lazy", target]);
        }
        rmSync(base, { recursive: true });
      },
    };
  });
}

function isLoader(flag: string, place: number, all: readonly string[]): boolean {
  const isName = (text: string | undefined): boolean => text === "--import" || text === "--require";
  return isName(flag) || isName(all[place - 1]) || /^--(import|require)=/.test(flag);
}

function read(directory: string, below: string): Record<string, string> {
  const names = readdirSync(join(directory, below)).filter((name) => below !== "" || !name.startsWith(".."));
  return Object.assign(
    {},
    ...names.map((name) => {
      const path = join(below, name);
      const isDirectory = statSync(join(directory, path)).isDirectory();
      return isDirectory ? read(directory, path) : { [path]: readFileSync(join(directory, path), "utf8") };
    }),
  ) as Record<string, string>;
}
