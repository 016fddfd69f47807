import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

// bin/kubelet and the tiny entry, as a user or a service manager meets them. Needs the bundle (npm run build).

const root = join(import.meta.dirname, "../..");
const launcher = join(root, "bin/kubelet");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }; // our own file

function launch(
  args: readonly string[],
  command = launcher,
): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(command, args, { encoding: "utf8" });
}

function inTemp(work: (folder: string) => void | Promise<void>): () => Promise<void> {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), "launcher-"));
    try {
      await work(folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
}

test("--version is one line that begins as the original's does", () => {
  const { status, stdout, stderr } = launch(["--version"]);
  assert.deepEqual({ status, stderr }, { status: 0, stderr: "" });
  assert.match(stdout, new RegExp(`^Kubernetes v1\\.\\d+\\.\\d+\\+kubelet-ts\\.${version}\\n$`));
});

test("--version=VERSION goes on, and only changes what the agent calls itself", () => {
  const { status, stderr } = launch(["--version=v1.36.3-mine", "--no-such-flag"]);
  assert.equal(status, 1);
  assert.match(stderr, /unknown flag --no-such-flag/);
});

test("--version=raw is JSON", () => {
  const info = JSON.parse(launch(["--version=raw"]).stdout) as Record<string, string>; // what is checked here
  assert.equal(info["major"], "1");
  assert.equal(info["nodeVersion"], process.version);
  assert.match(info["gitVersion"] ?? "", /^v1\.\d+\.\d+\+kubelet-ts\./);
});

test(
  "it works through a symlink",
  inTemp((folder) => {
    symlinkSync(launcher, join(folder, "kubelet"));
    assert.equal(launch(["--version"], join(folder, "kubelet")).status, 0);
  }),
);

test(
  "node takes the launcher's place: same pid, flags, environment and arguments",
  inTemp(async (folder) => {
    const node = join(folder, "node");
    writeFileSync(node, '#!/bin/sh\necho "$$ $UV_THREADPOOL_SIZE $MALLOC_ARENA_MAX"\nfor arg; do echo "$arg"; done\n');
    chmodSync(node, 0o755);
    const { UV_THREADPOOL_SIZE: _unset, MALLOC_ARENA_MAX: _unset2, ...env } = process.env;
    const child = spawn(launcher, ["up", "a b"], {
      env: { ...env, KUBELET_NODE: node },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
    });
    await new Promise((resolve) => child.on("close", resolve));
    const [first, ...args] = output.trimEnd().split("\n");
    assert.equal(first, `${child.pid} 16 2`);
    assert.deepEqual(args, [
      "--max-semi-space-size=4",
      "--max-old-space-size=512",
      join(root, "dist/entry.cjs"),
      "up",
      "a b",
    ]);
  }),
);

test(
  "without a bundle it says in one line what to do",
  inTemp((folder) => {
    mkdirSync(join(folder, "bin"));
    copyFileSync(launcher, join(folder, "bin/kubelet"));
    const { status, stderr } = launch(["ps"], join(folder, "bin/kubelet"));
    assert.equal(status, 1);
    assert.match(stderr, /^kubelet: not built yet: run .*\n$/);
  }),
);

test("V8 takes the code cache when it has the launcher's flags", () => {
  const dist = join(root, "dist");
  const cache = readdirSync(dist).find((name) => name.endsWith(".cache"));
  assert.ok(cache !== undefined, "the build made a code cache");
  const program = `
    const { readFileSync } = require("node:fs");
    const [filename, cache] = process.argv.slice(1);
    const source = require("node:module").wrap(readFileSync(filename, "latin1"));
    const script = new (require("node:vm").Script)(source, { filename, cachedData: readFileSync(cache) });
    process.stdout.write(String(script.cachedDataRejected));
  `;
  const flags = readFileSync(launcher, "utf8").match(/--max-[a-z-]+=\d+/g) ?? [];
  const args = [...flags, "-e", program, join(dist, "kubelet.cjs"), join(dist, cache)];
  assert.equal(spawnSync(process.execPath, args, { encoding: "utf8" }).stdout, "false");
});
