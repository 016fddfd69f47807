// `npm run test:cluster [PART-OF-A-NAME …]`: the suites of test/cluster on a real etcd and kube-apiserver.
// Builds the binaries if they are not there (once, minutes). What cannot run here is said; with KUBELET_STRICT=1 that
// is a failure, except on a machine without Go.
import "./require-node.mjs";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackages } from "./packages.mjs";
import { CommandError, green, red, run, say, seconds, yellow } from "./progress.mjs";
import { installNodeModules, root } from "./setup.mjs";

const strict = process.env.KUBELET_STRICT === "1";
const wanted = process.argv.slice(2);
const began = performance.now();
/** The build script's word for: there is no Go here. */
const NO_GO = 3;
/** Suites at a time: each has a control plane of its own, and mostly waits. */
const LANES = 2;
/** A suite's word for: this machine cannot run me; its last line says why. */
const SKIPPED = 77;

/** The folder with the binaries, or undefined when there is nothing to build them with. */
async function binaries() {
  const command = [process.execPath, join(root, "scripts/build-kubernetes.mjs")];
  const { code, stdout } = await run("Kubernetes binaries", command, { cwd: root, accept: [NO_GO] });
  return code === 0 ? stdout.trimEnd().split("\n").at(-1) : undefined;
}

async function runSuites(binDir) {
  const folder = join(root, "test/cluster");
  const suites = (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => name.endsWith(".ts"))
    .filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)))
    .sort();
  if (suites.length === 0) throw new Error("no suite was found");
  let failed = 0;
  const skipped = [];
  const one = async (name) => {
    const temp = mkdtempSync(join(tmpdir(), "kt-"));
    const env = { ...process.env, KUBE_BIN_DIR: binDir, TSX_DISABLE_CACHE: "1", TMPDIR: temp };
    const command = [process.execPath, "--import", "tsx", join("test/cluster", name)];
    try {
      const { code, output } = await run(`test/cluster/${name}`, command, {
        cwd: root,
        env,
        accept: [SKIPPED],
        note: counts,
      });
      if (code === SKIPPED) skipped.push(`${name}: ${output.trimEnd().split("\n").at(-1)}`);
      const left = readdirSync(temp).filter((entry) => !entry.startsWith("tsx-") && !entry.startsWith("node-compile"));
      if (left.length > 0) throw new Error(`${name} left behind: ${left.join(", ")}`);
    } catch (error) {
      failed++;
      if (!(error instanceof CommandError)) say(red(String(error)));
    } finally {
      rmSync(temp, { recursive: true, force: true, maxRetries: 3 });
    }
  };
  const lane = async () => {
    for (let name = suites.shift(); name !== undefined; name = suites.shift()) await one(name);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return { failed, skipped };
}

/** What node:test counted, in a few words. */
function counts(output) {
  const [, passed] = /^# pass (\d+)/m.exec(output) ?? [];
  return passed === undefined ? "" : `${passed} passed`;
}

try {
  const missing = await installPackages({ forTests: true });
  if (missing.length > 0) say(yellow(`not installed: ${missing.join(", ")}`));
  await installNodeModules();
  // The suites of the agent run what users run.
  await run("build", [process.execPath, join(root, "scripts/build.mjs")], { cwd: root });
  const binDir = await binaries();
  if (binDir === undefined) {
    say(yellow("left out: cluster tests: no Go on this machine to build Kubernetes with"));
  } else {
    const { failed, skipped } = await runSuites(binDir);
    for (const reason of skipped) say(yellow(`skipped ${reason}`));
    const took = seconds(performance.now() - began);
    if (failed === 0 && !(strict && skipped.length > 0)) say(green(`✓ cluster tests passed in ${took}`));
    else {
      say(red(`✗ cluster tests: ${failed} failed, ${skipped.length} skipped (${took})`));
      process.exitCode = 1;
    }
  }
} catch (error) {
  say(red(error instanceof CommandError ? error.message : String(error.stack ?? error)));
  process.exitCode = 1;
}
