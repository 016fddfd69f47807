// Builds the Kubernetes control plane and kubectl for the cluster tests, once, into a cache outside the checkout.
// `build-kubernetes.mjs [kubelet] [kubeadm] [kube-proxy]`: those too; the original kubelet is for the comparing benchmark
// and for the exchange with this agent, the other two for the cluster that kubeadm makes.
// KUBE_BIN_DIR names ready binaries instead; KUBE_VERSION picks another version.
// Progress goes to stderr; the last line on stdout is the directory that holds the binaries.
// Exit codes: 0 ready, 3 there is no Go on this machine, 1 anything else.
import { spawn, spawnSync } from "node:child_process";
import {
  accessSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { kubernetesGoMod } from "./kubernetes-module.mjs";

const DEFAULT_VERSION = "v1.36.3";
const MODULE = "k8s.io/kubernetes";
const BINARIES = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];
const ON_REQUEST = ["kubelet", "kubeadm", "kube-proxy"];
const NO_GO = 3;
/** A line at least this often, so that minutes of compiling do not look like a hang. */
const PROGRESS_MS = 5000;

const say = (line) => process.stderr.write(`build-kubernetes: ${line}\n`);
const fail = (text) => {
  throw new Error(text);
};

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const missingIn = (dir, names) => names.filter((name) => !isExecutable(join(dir, name)));

/** `v1.36.3` of `1.36.3` or `v1.36.3`. */
function wantedVersion() {
  const given = process.env.KUBE_VERSION || DEFAULT_VERSION;
  const version = given.startsWith("v") ? given : `v${given}`;
  if (!/^v1\.\d+\.\d+(-[\w.]+)?$/.test(version)) fail(`KUBE_VERSION=${given} is no version like ${DEFAULT_VERSION}`);
  return version;
}

function cacheDir(version) {
  const base = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(base, "kubelet-ts", `kubernetes-${version.slice(1)}`);
}

/** Runs go in `dir`; `onLine` sees what it writes to stderr. Rejects with the tail of that. */
function go(dir, args, onLine = () => undefined) {
  // The module that is built is ours and in `dir`: a workspace around it or a vendor flag would be in the way.
  const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=mod -buildvcs=false" };
  return new Promise((resolve, reject) => {
    const child = spawn("go", args, { cwd: dir, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let tail = "";
    child.stdout.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text) => {
      tail = (tail + text).slice(-4000);
      for (const line of text.split("\n")) if (line !== "") onLine(line);
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve(output);
      else reject(new Error(`go ${args[0]} ended with ${signal ?? `code ${code}`}:\n${tail}`));
    });
  });
}

async function build(work, version, names) {
  writeFileSync(join(work, "go.mod"), "module kubelet-ts.invalid/fetch\n");
  say(`fetching ${MODULE} ${version}`);
  const { GoMod: upstream } = JSON.parse(await go(work, ["mod", "download", "-json", `${MODULE}@${version}`]));
  const text = readFileSync(upstream, "utf8");
  writeFileSync(join(work, "go.mod"), kubernetesGoMod({ name: "build", version, upstream: text }));
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version);
  const stamp = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: "clean" };
  const ldflags = Object.entries(stamp).map(([key, value]) => `-X k8s.io/component-base/version.${key}=${value}`);
  const started = Date.now();
  const seconds = () => Math.round((Date.now() - started) / 1000);
  let compiled = 0;
  const ticker = setInterval(() => say(`${compiled} packages compiled, ${seconds()} s`), PROGRESS_MS);
  try {
    const args = ["build", "-v", "-trimpath", "-ldflags", `-s -w ${ldflags.join(" ")}`, "-o", `${work}/bin/`];
    for (const name of names) args.push(`${MODULE}/cmd/${name}`);
    await go(work, args, (line) => {
      if (!line.startsWith("go: ")) compiled += 1;
    });
  } finally {
    clearInterval(ticker);
  }
  return seconds();
}

async function main() {
  const asked = process.argv.slice(2);
  const unknown = asked.filter((name) => !ON_REQUEST.includes(name) && !BINARIES.includes(name));
  if (unknown.length > 0) fail(`unknown binary ${unknown.join(", ")}: ${ON_REQUEST.join(", ")} may be asked for`);
  const names = [...new Set([...BINARIES, ...asked])];
  const given = process.env.KUBE_BIN_DIR;
  const version = wantedVersion();
  const target = given || cacheDir(version);
  const missing = missingIn(target, names);
  if (missing.length === 0) {
    console.log(target);
    return 0;
  }
  if (given) fail(`KUBE_BIN_DIR=${given} does not hold ${missing.join(", ")}`);
  if (spawnSync("go", ["version"], { stdio: "ignore" }).status !== 0) {
    say(`no Go on this machine to build Kubernetes ${version} with (KUBE_BIN_DIR may name ready binaries)`);
    return NO_GO;
  }
  mkdirSync(target, { recursive: true });
  const work = mkdtempSync(`${target}.build-`);
  try {
    say(`building ${missing.join(", ")} ${version} into ${target} (once, about eight minutes on two cores)`);
    mkdirSync(join(work, "bin"));
    const seconds = await build(work, version, missing);
    // Each binary appears whole; one of a build that went on beside this one is as good and is replaced.
    for (const name of missing) renameSync(join(work, "bin", name), join(target, name));
    say(`done in ${seconds} s`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  console.log(target);
  return 0;
}

process.exitCode = await main().catch((error) => {
  say(error.message);
  return 1;
});
