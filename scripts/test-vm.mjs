// `npm run test:vm [PART-OF-A-PATH …]`: integration suites in an emulated machine with what this one may lack: unified
// cgroups, systemd, AppArmor, huge pages, a disk with project quotas. `npm run test:vm -- --run 'COMMAND'` runs any
// command there, in a copy of the checkout; `--prepare` only makes the machine. Emulation is 10 to 20 times slower; the
// machine has no network but its own.
import "./require-node.mjs";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackages } from "./packages.mjs";
import { CommandError, green, red, run, say, seconds } from "./progress.mjs";
import { build, installNodeModules, root } from "./setup.mjs";
import { boot, makeDisks } from "./vm/boot.mjs";
import { obstacle, vmImage } from "./vm/image.mjs";

const SUITES = ["lifecycle-cgroups", "lifecycle-systemd", "lifecycle-kernel", "lifecycle-containerd2", ".root.test.ts"];
/** With --needed: the suites of test/allowed-skips.ts that most machines leave out, as .ci/run wants them. */
const NEEDED = [
  "lifecycle-kernel",
  "lifecycle-systemd",
  "lifecycle-containerd2:archive",
  "volumes-quota",
  "quota.root.test.ts",
  "server-pages:journal",
];
/** Limits that end a hanging test are multiplied by this. */
const SLOWNESS = "10";
/** The build scripts' word for: something to build with is missing here. */
const NO_GO = 3;

function commandOf(args) {
  if (args[0] === "--run") return args.slice(1).join(" ");
  const suites = args.length === 0 ? SUITES : args[0] === "--needed" ? NEEDED : args;
  return ["node --import tsx test/integration/run.ts", ...suites.map((part) => `'${part}'`)].join(" ");
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
  const env = {
    KUBELET_TEST_SLOW: SLOWNESS,
    KUBELET_TEST_LANES: "1",
    KUBELET_TEST_VM: "1",
    KUBELET_STRICT: process.env.KUBELET_STRICT ?? "",
    TERM: "dumb",
    ...(folders.containerd2 && { CONTAINERD2_BIN_DIR: "/vm/containerd2" }),
    ...(folders.runc && { RUNC_BIN_DIR: "/vm/runc" }),
  };
  const work = mkdtempSync(join(tmpdir(), "kt-vm-"));
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
  try {
    say("… disks");
    const disks = await makeDisks(work, { root, command: commandOf(process.argv.slice(2)), env, binaries: folders });
    say("… booting (half a minute)");
    return await boot(work, { image, disks, signal: stop.signal, onText: (text) => process.stdout.write(text) });
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
