// What must be there before anything of ours runs: Debian packages, npm packages, the bundle.
// Plain JavaScript without dependencies (node_modules may not exist yet). With nothing to do it costs a few stat calls.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { installPackages } from "./packages.mjs";
import { run } from "./progress.mjs";

export const root = join(import.meta.dirname, "..");

/** Makes the checkout ready to run. Resolves to the names of Debian packages that could not be had. */
export async function setup({ forTests = false } = {}) {
  const missing = await installPackages({ forTests });
  await installNodeModules();
  await build();
  return missing;
}

/** `npm ci`, unless what is installed is already what package-lock.json asks for. */
export async function installNodeModules() {
  const stampFile = join(root, "node_modules/.stamp");
  const lockText = readFileSync(join(root, "package-lock.json"), "utf8");
  const stamp = createHash("sha256").update(`${process.platform} ${process.arch}\n`).update(lockText).digest("hex");
  if (read(stampFile) === stamp) return;
  if (!isInstalled(JSON.parse(lockText))) {
    await run("npm ci", [...npm(), "ci", "--no-audit", "--no-fund", "--loglevel=warn"], { cwd: root });
  }
  writeStamp(stampFile, stamp);
}

/** Someone ran npm by hand: trust npm's own record of what it installed, if every locked package is in it. */
function isInstalled(lock) {
  const record = read(join(root, "node_modules/.package-lock.json"));
  if (record === undefined) return false;
  const installed = JSON.parse(record).packages;
  return Object.entries(lock.packages).every(([path, { version, optional }]) => {
    if (path === "" || optional === true) return true;
    return installed[path]?.version === version && existsSync(join(root, path, "package.json"));
  });
}

/** The npm that started us, else the one in PATH. */
export function npm() {
  const path = process.env.npm_execpath;
  return path?.endsWith(".js") && existsSync(path) ? [process.execPath, path] : ["npm"];
}

/** Bundles, unless no input changed: size and time of each file first, the content only where these differ. */
export async function build() {
  const stampFile = join(root, "dist/.stamp");
  const inputs = buildInputs();
  const before = parse(read(stampFile));
  const same = (was, now) => was?.length === now.length && now.every((line, index) => line === was[index]);
  const built = existsSync(join(root, "dist/entry.cjs"));
  if (built && before?.node === process.version && same(before.stats, inputs.stats)) return;
  const content = inputs.hash();
  if (!built || before?.node !== process.version || before.content !== content) {
    await run("build", [process.execPath, join(root, "scripts/build.mjs")], { cwd: root });
  }
  writeStamp(stampFile, JSON.stringify({ node: process.version, content, stats: inputs.stats }));
}

function buildInputs() {
  const files = ["package.json", "package-lock.json", "tsconfig.json", "scripts/build.mjs"].map((f) => join(root, f));
  for (const folder of ["src", "web"]) {
    for (const entry of readdirSync(join(root, folder), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || entry.name.endsWith(".test.ts")) continue;
      // Node 20.19 calls the folder both ways, later ones only `parentPath`.
      files.push(join(entry.parentPath ?? entry.path, entry.name));
    }
  }
  files.sort();
  const stats = files.map((file) => {
    const { size, mtimeMs } = statSync(file);
    return `${relative(root, file)} ${size} ${mtimeMs}`;
  });
  const hash = () => {
    const sum = createHash("sha256");
    for (const file of files)
      sum
        .update(`${relative(root, file)}\0`)
        .update(readFileSync(file))
        .update("\0");
    return sum.digest("hex");
  };
  return { stats, hash };
}

/** Someone else's checkout may be read-only: then everything is looked at again next time. */
function writeStamp(path, text) {
  try {
    writeFileSync(path, text);
  } catch (error) {
    if (!["EACCES", "EPERM", "EROFS"].includes(error.code)) throw error;
  }
}

function read(path) {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

function parse(text) {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
