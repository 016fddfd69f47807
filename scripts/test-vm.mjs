// `npm run test:vm [PART-OF-A-PATH …]`: integration suites in a machine with what this one may lack. The emulated one has
// unified cgroups, systemd, AppArmor, two NUMA nodes, huge pages, a disk with project quotas, and is 10 to 20 times slower
// than this machine; the user-mode one has NFS and iSCSI, and is a few times slower. `npm run test:vm -- --run 'COMMAND'` runs any
// command in a copy of the checkout (`--user-mode --run …` in the other machine); `--prepare` only makes the machines. They
// have no network but their own.
import "./require-node.mjs";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackages } from "./packages.mjs";
import { CommandError, green, red, run, say, seconds } from "./progress.mjs";
import { build, installNodeModules, root } from "./setup.mjs";
import { boot, makeDisks } from "./vm/boot.mjs";
import { obstacle, vmImage } from "./vm/image.mjs";
import { bootUserMode } from "./vm/user-mode.mjs";

const SUITES = ["lifecycle-cgroups", "lifecycle-systemd", "lifecycle-kernel", "lifecycle-containerd2", ".root.test.ts"];
/** Suites that need modules of a kernel and little else: they run in the user-mode machine. */
const USER_MODE = ["storage-nfs", "storage-disks", "pressure-unified"];
/**
 * With --needed: the suites of test/allowed-skips.ts that most machines leave out, as .ci/run wants them. CONTRIBUTING.md names
 * those that take too long for it.
 */
const NEEDED = [
  "lifecycle-kernel",
  "lifecycle-systemd",
  "lifecycle-containerd2:archive",
  "volumes-quota",
  "quota.root.test.ts",
  "server-pages:journal",
  "pressure-logind",
];
/** Limits that end a hanging test are multiplied by these; in .ci/run the machines also wait for others. */
const SLOWNESS = { emulated: "30", userMode: "8" };
/** The build scripts' word for: something to build with is missing here. */
const NO_GO = 3;

/** The runs that are asked for: the machine and the command of each. */
function runsOf(args) {
  const isUserMode = args[0] === "--user-mode";
  const rest = isUserMode ? args.slice(1) : args;
  if (rest[0] === "--run") return [{ isUserMode, command: rest.slice(1).join(" ") }];
  const suites = rest.length === 0 ? SUITES : rest[0] === "--needed" ? NEEDED : rest;
  const command = (some) => ["node --import tsx test/integration/run.ts", ...some.map((part) => `'${part}'`)].join(" ");
  const belongs = (part) => isUserMode || USER_MODE.some((name) => part.includes(name));
  return [true, false]
    .map((kind) => ({ isUserMode: kind, suites: suites.filter((part) => belongs(part) === kind) }))
    .filter((each) => each.suites.length > 0)
    .map((each) => ({ isUserMode: each.isUserMode, command: command(each.suites) }));
}

/** Directories of binaries that go along, by the name of their directory inside. */
async function binaries() {
  const found = {};
  for (const [name, script] of [
    ["containerd2", "build-containerd.mjs"],
    ["runc", "build-runc.mjs"],
  ]) {
    const command = [process.execPath, join(root, "scripts", script)];
    const { code, stdout } = await run(name, command, { cwd: root, accept: [NO_GO] });
    if (code === 0) found[name] = stdout.trimEnd().split("\n").at(-1);
  }
  return found;
}

async function main() {
  await installPackages({ forTests: true, forVm: true });
  const reason = obstacle();
  if (reason !== undefined) throw new Error(`no machine can be emulated here: ${reason}`);
  await installNodeModules();
  await build();
  const image = await vmImage();
  const folders = await binaries();
  if (process.argv[2] === "--prepare") return 0;
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
  const runs = runsOf(process.argv.slice(2));
  // Both at the same time: suites in the user-mode machine mostly wait. What is printed there comes in one piece.
  const codes = await Promise.all(
    runs.map(async (each) => {
      const isKept = each.isUserMode && runs.length > 1;
      const kept = [];
      const print = (text) => (isKept ? kept.push(text) : process.stdout.write(text));
      try {
        return await runIn(each, { image, folders, stop, print });
      } catch (error) {
        stop.abort(error);
        throw error;
      } finally {
        process.stdout.write(kept.join(""));
      }
    }),
  );
  return codes.find((code) => code !== 0) ?? 0;
}

/** Boots a machine for one command, and answers with its exit code. */
async function runIn({ isUserMode, command }, { image, folders, stop, print }) {
  const env = {
    KUBELET_TEST_SLOW: isUserMode ? SLOWNESS.userMode : SLOWNESS.emulated,
    KUBELET_TEST_LANES: "1",
    KUBELET_TEST_VM: "1",
    KUBELET_TEST_STEPS: process.env.KUBELET_TEST_STEPS ?? "",
    KUBELET_STRICT: process.env.KUBELET_STRICT ?? "",
    TERM: "dumb",
    ...(folders.containerd2 && { CONTAINERD2_BIN_DIR: "/vm/containerd2" }),
    ...(folders.runc && { RUNC_BIN_DIR: "/vm/runc" }),
  };
  const work = mkdtempSync(join(tmpdir(), "kt-vm-"));
  try {
    say("… disks");
    const disks = await makeDisks(work, { root, command, env, binaries: folders, hasQuotas: !isUserMode });
    say(isUserMode ? "… booting the user-mode machine" : "… booting the emulated machine (half a minute)");
    const options = { image, disks, signal: stop.signal, onText: print };
    return await (isUserMode ? bootUserMode : boot)(work, options);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const began = performance.now();
try {
  process.exitCode = await main();
  const took = seconds(performance.now() - began);
  say(
    process.exitCode === 0 ? green(`✓ in the machine, in ${took}`) : red(`✗ exit code ${process.exitCode} (${took})`),
  );
} catch (error) {
  if (!(error instanceof CommandError)) say(red(error.message));
  process.exitCode = 1;
}
