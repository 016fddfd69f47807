// Newer Node releases for a second run of the tests, from npm, kept in a cache outside the checkout.
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { CommandError, run } from "./progress.mjs";
import { npm } from "./setup.mjs";

/** Pinned, so that a test fails because of us and not because of a release of last night. */
const VERSIONS = ["24.21.0", "26.10.0"];

/** Resolves to the releases that could be had, `{ version, path }`, and to a word about each that could not. */
export async function fetchNodes() {
  const nodes = [];
  const gaps = [];
  for (const version of VERSIONS) {
    const name = `node-${process.platform}-${process.arch}`;
    const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "kubelet-ts", `node-${version}`);
    const path = join(folder, "node_modules", name, "bin/node");
    if (!existsSync(path)) {
      try {
        await install(folder, `${name}@${version}`);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        gaps.push(`tests on Node ${version}: the npm package ${name} could not be fetched`);
        continue;
      }
    }
    nodes.push({ version, path });
  }
  return { nodes, gaps };
}

/** Into a folder beside and renamed, so that half an installation is never taken for a whole one. */
async function install(folder, spec) {
  const fresh = `${folder}.${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  try {
    const args = [
      "install",
      "--prefix",
      fresh,
      "--no-save",
      "--ignore-scripts",
      "--no-audit",
      "--no-fund",
      "--loglevel=error",
      spec,
    ];
    await run(`npm install ${spec}`, [...npm(), ...args], { cwd: fresh });
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}
