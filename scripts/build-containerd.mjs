// Builds containerd 2 for the contract tests, once, into a cache outside the checkout.
// Progress goes to stderr; the last line on stdout is the directory that holds the binaries.
// Exit codes: 0 ready, 3 there is no Go on this machine, 1 anything else.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

const VERSION = "2.4.2";
const MODULE = "github.com/containerd/containerd/v2";
const BINARIES = ["containerd", "containerd-shim-runc-v2", "ctr"];
const TAGS = "no_btrfs,no_devmapper,no_zfs";
const NO_GO = 3;
/** A line at least this often, so that three minutes of compiling do not look like a hang. */
const PROGRESS_MS = 5000;

const say = (line) => process.stderr.write(`build-containerd: ${line}\n`);

/** True when the directory holds every binary. */
const isComplete = (dir) => BINARIES.every((name) => existsSync(join(dir, name)));

function cacheDir() {
  const base = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(base, "kubelet-ts", `containerd-${VERSION}`);
}

/** `go install` into `target`, counting the packages as they are compiled. */
function install(target) {
  const args = ["install", "-v", "-trimpath", "-tags", TAGS];
  args.push("-ldflags", `-s -w -X ${MODULE}/version.Version=v${VERSION}`);
  for (const name of BINARIES) args.push(`${MODULE}/cmd/${name}@v${VERSION}`);
  const env = { ...process.env, GOBIN: target, CGO_ENABLED: "0" };
  const started = Date.now();
  let compiled = 0;
  let tail = "";
  return new Promise((resolve, reject) => {
    const child = spawn("go", args, { env, cwd: target, stdio: ["ignore", "ignore", "pipe"] });
    const ticker = setInterval(() => {
      say(`${compiled} packages compiled, ${Math.round((Date.now() - started) / 1000)} s`);
    }, PROGRESS_MS);
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text) => {
      compiled += text.split("\n").length - 1;
      tail = (tail + text).slice(-4000);
    });
    child.on("error", (error) => {
      clearInterval(ticker);
      reject(error);
    });
    child.on("close", (code, signal) => {
      clearInterval(ticker);
      if (code === 0) resolve(Math.round((Date.now() - started) / 1000));
      else reject(new Error(`go install ended with ${signal ?? `code ${code}`}:\n${tail}`));
    });
  });
}

async function main() {
  const given = process.env.CONTAINERD2_BIN_DIR;
  if (given) {
    if (!isComplete(given)) {
      say(`CONTAINERD2_BIN_DIR=${given} does not hold ${BINARIES.join(", ")}`);
      return 1;
    }
    console.log(given);
    return 0;
  }
  const target = cacheDir();
  if (isComplete(target)) {
    console.log(target);
    return 0;
  }
  if (spawnSync("go", ["version"], { stdio: "ignore" }).status !== 0) {
    say(
      `there is no Go on this machine, so containerd ${VERSION} cannot be built (CONTAINERD2_BIN_DIR may name ready binaries)`,
    );
    return NO_GO;
  }
  mkdirSync(dirname(target), { recursive: true });
  const work = mkdtempSync(`${target}.build-`);
  try {
    say(`building containerd ${VERSION} into ${target} (once, about three minutes)`);
    const seconds = await install(work);
    // Another build may have won the race; its result is as good as this one.
    if (!isComplete(target)) {
      rmSync(target, { recursive: true, force: true });
      renameSync(work, target);
    }
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
