// Builds the images of examples/apps from Debian's packages, once, into a cache outside the checkout: the packages are
// downloaded and unpacked, never installed. One OCI archive an image, NAME.tar, each with the tags 1 and 2, which differ
// in the variable IMAGE_VERSION only. The last line on stdout is their directory.
// Exit codes: 0 ready, 77 this machine cannot build them, 1 anything else.
import "./require-node.mjs";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { register } from "tsx/esm/api";
import { filesOf } from "./app-images/files.mjs";
import { IMAGES, PACKAGES, UNUSED } from "./app-images/recipes.mjs";

const unregister = register();
const { buildOciArchive, imageArchitecture } = await import("../src/adapters/embedded/oci-archive.ts");
await unregister();

const NOT_HERE = 77;
const TAGS = ["1", "2"];
const say = (line) => process.stderr.write(`build-app-images: ${line}\n`);
const run = (command, args, options = {}) =>
  execFileSync(command, args, { encoding: "utf8", maxBuffer: 64 << 20, ...options });

/** A change of the recipes makes another directory. */
function target() {
  const sources = ["build-app-images.mjs", "app-images/files.mjs", "app-images/recipes.mjs"];
  const hash = createHash("sha256");
  for (const name of sources) hash.update(readFileSync(join(import.meta.dirname, name)));
  const base = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return join(base, "kubelet-ts", `app-images-${hash.digest("hex").slice(0, 12)}`);
}

function obstacle() {
  if (process.getuid?.() !== 0) return "not root";
  return ["apt-get", "apt-cache", "dpkg-deb"].find((program) => !existsSync(`/usr/bin/${program}`));
}

/** The packages and all that they depend on, by name. */
function closure() {
  const lines = run("apt-cache", ["depends", "--recurse", "--important", ...PACKAGES]).split("\n");
  const names = lines.filter((line) => /^[a-z0-9]/.test(line)).map((line) => line.replace(/:.*$/, ""));
  return [...new Set(names)].filter((name) => !UNUSED.some((pattern) => pattern.test(name)));
}

function download(dir) {
  const fetch = () =>
    // Its own sandbox user may not write here.
    run("apt-get", ["download", "-q", "-o", "APT::Sandbox::User=root", ...closure()], { cwd: dir, stdio: "pipe" });
  try {
    fetch();
  } catch {
    // The lists of a fresh machine are empty, those of an old one name packages that are gone.
    run("apt-get", ["update", "-q"], { stdio: "pipe" });
    fetch();
  }
}

function unpack(debs, root) {
  mkdirSync(root);
  for (const name of ["bin", "sbin", "lib", "lib64"]) {
    mkdirSync(join(root, "usr", name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
  // Files of these packages are below /lib or below /usr/lib: to be one place, the links stay.
  const script =
    'for deb in "$1"/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$2"; done';
  run("sh", ["-ec", script, "sh", debs, root]);
}

function build(into) {
  const [debs, root] = [join(into, "debs"), join(into, "root")];
  mkdirSync(debs);
  download(debs);
  unpack(debs, root);
  for (const image of IMAGES) {
    const files = filesOf(root, image);
    const tagged = TAGS.map((tag) => ({
      name: `kubelet.local/apps/${image.name}:${tag}`,
      files,
      env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", `IMAGE_VERSION=${tag}`],
    }));
    const archive = buildOciArchive(tagged, imageArchitecture(process.arch));
    writeFileSync(join(into, `${image.name}.tar`), archive);
    say(`${image.name}: ${files.length} files, ${Math.round(archive.length / 2 ** 20)} MiB`);
  }
  for (const part of [debs, root]) rmSync(part, { recursive: true });
}

function provide() {
  const given = process.env.APP_IMAGES_DIR || target();
  const isComplete = IMAGES.every(({ name }) => existsSync(join(given, `${name}.tar`)));
  if (!isComplete) {
    const missing = obstacle();
    if (missing !== undefined) {
      say(`cannot build the images of examples/apps here: ${missing}`);
      return NOT_HERE;
    }
    mkdirSync(join(given, ".."), { recursive: true });
    const work = mkdtempSync(`${given}.build-`);
    try {
      say(`building ${basename(given)} of Debian's packages (once, about half a minute)`);
      build(work);
      rmSync(given, { recursive: true, force: true });
      renameSync(work, given);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  process.stdout.write(`${given}\n`);
  return 0;
}

try {
  process.exitCode = provide();
} catch (error) {
  say(`${error.message}\n${error.stderr ?? ""}`);
  process.exitCode = 1;
}
