// Completes package-lock.json after `npm install` against a registry that has only this platform's binary packages:
// npm leaves the optional packages of other platforms out of the lock then, and `npm ci` refuses such a lock everywhere.
// What is missing is known without the registry: the name tells the platform, the parent tells the version.
// The hash of its content is not known without it: where the registry has the package, it is asked; else it stays open, and
// test/lockfile.test.ts sees to it that no package of our own platforms is without.
// Download addresses are dropped too: each machine has its own registry. Run it after every change of a dependency.
import "./require-node.mjs";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const path = join(import.meta.dirname, "..", "package-lock.json");
const lock = JSON.parse(readFileSync(path, "utf8"));

const SYSTEMS = ["aix", "android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32"];
const CPUS = ["arm64", "arm", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "x64"];

/** `@swc/core-linux-x64-musl` → os linux, cpu x64, libc musl; undefined for a name that tells no platform. */
function platformOf(name) {
  const words = name.split(/[/-]/);
  const os = SYSTEMS.find((system) => words.includes(system));
  const cpu = CPUS.find((one) => words.some((word) => word === one));
  if (os === undefined || cpu === undefined) return undefined;
  const libc = words.some((word) => word.startsWith("musl"))
    ? "musl"
    : words.some((w) => w.startsWith("gnu"))
      ? "glibc"
      : undefined;
  return { cpu: [cpu], os: [os], ...(libc === undefined ? {} : { libc: [libc] }) };
}

let added = 0;
for (const [place, parent] of Object.entries(lock.packages)) {
  delete parent.resolved;
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const nested = `${place}/node_modules/${name}`;
    const hoisted = `node_modules/${name}`;
    if (lock.packages[nested] !== undefined || lock.packages[hoisted] !== undefined) continue;
    const platform = platformOf(name);
    if (platform === undefined) {
      process.stderr.write(`${name}@${version}: optional, missing, and its name tells no platform; left out\n`);
      continue;
    }
    const dev = parent.dev === true ? { dev: true } : {};
    lock.packages[hoisted] = { version, ...platform, ...dev, optional: true };
    added++;
  }
}
/** The hash of a package's content, if this machine's registry knows it. */
function integrityOf(name, version) {
  const { stdout } = spawnSync("npm", ["view", `${name}@${version}`, "dist.integrity", "--loglevel=silent"], {
    encoding: "utf8",
  });
  return /^sha512-\S+$/.exec((stdout ?? "").trim())?.[0];
}

let open = 0;
for (const [place, entry] of Object.entries(lock.packages)) {
  if (place === "" || entry.integrity !== undefined) continue;
  const integrity = integrityOf(place.replace(/^.*node_modules\//, ""), entry.version);
  if (integrity === undefined) open++;
  else entry.integrity = integrity;
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(`${added} optional packages of other platforms added, ${open} packages without a hash\n`);
