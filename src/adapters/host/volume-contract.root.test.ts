import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { volumeHostContract } from "../../../test/contract/volume-host-suite.ts";
import { mountNamespace, runInMountNamespace } from "../../../test/support/mount-namespace.ts";
import { SystemClock } from "../../lib/clock.ts";
import { LinuxHost } from "./index.ts";
import { readMountTable } from "./mount-table.ts";
import { LinuxVolumeHost } from "./volume-host.ts";

// Everything is mounted in a namespace of its own, which goes with the process, whatever happens.

if (mountNamespace() === undefined) {
  test("the contract of volumes on Linux", { skip: process.getuid?.() !== 0 && "needs root" }, () => {
    runInMountNamespace(import.meta.url);
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
