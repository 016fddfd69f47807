// The files of an image, taken from an unpacked root of Debian's packages.
import { execFileSync } from "node:child_process";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { ETC, LEFT_OUT } from "./recipes.mjs";

const SHARED = /\.so(\.[0-9.]+)?$/;

/** Returns the entries of the image's layer, parents first. Throws if a library is missing. */
export function filesOf(root, { programs, trees, links = {} }) {
  const triplet = readdirSync(join(root, "usr/lib")).find((name) => /-linux-gnu/.test(name));
  const whole = trees.flatMap((tree) => filesBelow(root, tree.replace("TRIPLET", triplet)));
  const listed = [...programs, ...whole];
  const linked = librariesOf(root, [...programs, ...whole.filter((path) => SHARED.test(path))]);
  const entries = new Map();
  const put = (entry) => entries.set(entry.path, entry);
  for (const name of ["bin", "sbin", "lib", "lib64"]) put({ kind: "symlink", path: name, target: `usr/${name}` });
  for (const path of ["dev", "etc", "proc", "run", "sys", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "var/lib"]) {
    put({ kind: "directory", path, mode: 0o755 });
  }
  put({ kind: "directory", path: "tmp", mode: 0o1777 });
  // What a name leads to is copied, by that name.
  for (const path of new Set([...listed, ...linked])) put(fileAt(root, path));
  for (const [name, text] of Object.entries(ETC)) {
    put({ kind: "file", path: `etc/${name}`, mode: 0o644, data: Buffer.from(text) });
  }
  put({ ...fileAt(root, "usr/bin/busybox"), path: "usr/bin/busybox" });
  const applets = execFileSync(join(root, "usr/bin/busybox"), ["--list"], { encoding: "utf8" }).trim().split("\n");
  for (const name of applets) {
    if (!entries.has(`usr/bin/${name}`)) put({ kind: "symlink", path: `usr/bin/${name}`, target: "busybox" });
  }
  for (const [path, target] of Object.entries(links)) put({ kind: "symlink", path, target });
  for (const path of [...entries.keys()]) {
    for (let parent = dirname(path); parent !== "."; parent = dirname(parent)) {
      if (!entries.has(parent)) put({ kind: "directory", path: parent, mode: 0o755 });
    }
  }
  return [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function fileAt(root, path) {
  const place = inside(root, path);
  return { kind: "file", path, mode: lstatSync(place).mode & 0o777, data: readFileSync(place) };
}

/** Where a path of the root really is: an absolute link leads to the root's own files, not to the machine's. */
function inside(root, path) {
  let place = root;
  const names = path.split("/");
  for (let links = 0; names.length > 0; ) {
    const name = names.shift();
    if (name === "" || name === ".") continue;
    const next = name === ".." ? dirname(place) : join(place, name);
    if (relative(root, next).startsWith("..")) throw new Error(`${path} leads out of the root`);
    if (!lstatSync(next).isSymbolicLink()) {
      place = next;
      continue;
    }
    if (++links > 40) throw new Error(`${path} is a circle of links`);
    const target = readlinkSync(next);
    if (target.startsWith("/")) place = root;
    names.unshift(...target.split("/"));
  }
  return place;
}

/** Paths below the root of a file, of all files of a directory, or of those that a last name with `*` stands for. */
function filesBelow(root, path) {
  if (basename(path).includes("*")) {
    const [first = "", last = ""] = basename(path).split("*");
    const names = readdirSync(join(root, dirname(path))).filter(
      (name) => name.startsWith(first) && name.endsWith(last),
    );
    return names.map((name) => join(dirname(path), name)).filter((name) => !LEFT_OUT.test(name));
  }
  const place = inside(root, path);
  if (!lstatSync(place).isDirectory()) return [path];
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map((entry) => join(path, relative(place, join(entry.parentPath ?? entry.path, entry.name))))
    .filter((name) => !LEFT_OUT.test(name) && isFile(root, name));
}

function isFile(root, path) {
  try {
    return lstatSync(inside(root, path)).isFile();
  } catch {
    // A link to what another package or an installation script brings.
    return false;
  }
}

/** What the dynamic loader of that root finds for these files, itself too. */
function librariesOf(root, files) {
  const loader = readdirSync(join(root, "usr/lib64"))
    .concat(readdirSync(join(root, "usr/lib")))
    .find((name) => name.startsWith("ld-linux"));
  const place = loader && [`lib64/${loader}`, `lib/${loader}`].find((path) => isFile(root, path));
  if (place === undefined) throw new Error("no dynamic loader in the packages");
  const found = new Set([place.replace(/^lib/, "usr/lib")]);
  for (const file of files) {
    const output = execFileSync("chroot", [root, `/${place}`, "--list", `/${file}`], { encoding: "utf8" });
    const missing = /(\S+) => not found/.exec(output);
    if (missing) throw new Error(`${file} needs ${missing[1]}, which no package has`);
    for (const [, path] of output.matchAll(/=> \/(\S+)/g)) found.add(path.replace(/^lib/, "usr/lib"));
  }
  return found;
}
