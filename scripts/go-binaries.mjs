// Builds programs written in Go, once, into a cache outside the checkout.
// Progress goes to stderr; the last line on stdout is the directory that holds the binaries.
// Exit codes: 0 ready, 3 something to build with is missing on this machine, 1 anything else.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";

const NO_GO = 3;
/** A line at least this often, so that minutes of compiling do not look like a hang. */
const PROGRESS_MS = 5000;

/** True when the command is there and says yes. */
export const succeeds = (command, ...args) => spawnSync(command, args, { stdio: "ignore" }).status === 0;

/**
 * What to build: `name`, `version`, `binaries`, `packages` as `go install` takes them, its `args`, more `env`, `given`
 * (the variable that names a directory with ready binaries), `takes` (how long, in words) and `missing` (a word about
 * what else is not there, or undefined). With `source` (contents by file name) the packages are those of a small module
 * made of these files: for a module that `go install` refuses by its version, or of which only parts are wanted.
 * Returns an exit code.
 */
export async function provide(program) {
  const say = (line) => process.stderr.write(`build-${program.name}: ${line}\n`);
  try {
    return await find(program, say);
  } catch (error) {
    say(error.message);
    return 1;
  }
}

/**
 * Like `provide`, for one program that is built of a small module: `module` in this `version`, the `go` version that it
 * asks for, and the text of `main`.
 */
export function provideFromModule({ module, go, main, ...program }) {
  const { name, version } = program;
  return provide({
    ...program,
    binaries: [name],
    source: {
      "go.mod": `module kubelet-ts.invalid/${name}\n\ngo ${go}\n\nrequire ${module} v${version}\n`,
      "main.go": main,
    },
    packages: ["."],
    args: ["-ldflags", "-s -w"],
    env: { CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=mod -buildvcs=false" },
  });
}

async function find(program, say) {
  const { name, version, binaries, given } = program;
  const isComplete = (dir) => binaries.every((binary) => existsSync(join(dir, binary)));
  const target = process.env[given] || cacheDir(program);
  if (process.env[given] && !isComplete(target)) throw new Error(`${given}=${target} has no ${binaries.join(", ")}`);
  if (!isComplete(target)) {
    const missing = succeeds("go", "version") ? program.missing : "Go";
    if (missing !== undefined) {
      say(`there is no ${missing} here, so ${name} ${version} cannot be built (${given} may name ready binaries)`);
      return NO_GO;
    }
    await build(program, target, { say, isComplete });
  }
  console.log(target);
  return 0;
}

function cacheDir({ name, version }) {
  const base = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(base, "kubelet-ts", `${name}-${version}`);
}

async function build(program, target, { say, isComplete }) {
  mkdirSync(dirname(target), { recursive: true });
  const work = mkdtempSync(`${target}.build-`);
  try {
    say(`building ${program.name} ${program.version} into ${target} (once, ${program.takes})`);
    const dir = program.source === undefined ? work : writeSource(program.source, `${work}/src`);
    const seconds = await install(program, { work, dir, say });
    if (dir !== work) rmSync(dir, { recursive: true });
    // Another build may have won the race; its result is as good as this one.
    if (!isComplete(target)) {
      rmSync(target, { recursive: true, force: true });
      renameSync(work, target);
    }
    say(`done in ${seconds} s`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function writeSource(source, dir) {
  mkdirSync(dir);
  for (const [name, text] of Object.entries(source)) writeFileSync(join(dir, name), text);
  return dir;
}

/** `go install` in `dir` into `work`, counting the packages as they are compiled. */
function install({ args, packages, env }, { work, dir, say }) {
  const started = Date.now();
  const seconds = () => Math.round((Date.now() - started) / 1000);
  let compiled = 0;
  let tail = "";
  return new Promise((resolve, reject) => {
    const child = spawn("go", ["install", "-v", "-trimpath", ...args, ...packages], {
      ...{ env: { ...process.env, ...env, GOBIN: work }, cwd: dir },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const ticker = setInterval(() => say(`${compiled} packages compiled, ${seconds()} s`), PROGRESS_MS);
    child.stderr.setEncoding("utf8").on("data", (text) => {
      compiled += text.split("\n").length - 1;
      tail = (tail + text).slice(-4000);
    });
    child.on("error", (error) => {
      clearInterval(ticker);
      reject(error);
    });
    child.on("close", (code, signal) => {
      clearInterval(ticker);
      if (code === 0) resolve(seconds());
      else reject(new Error(`go install ended with ${signal ?? `code ${code}`}:\n${tail}`));
    });
  });
}
