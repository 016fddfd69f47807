import { readFileSync, writeSync } from "node:fs";
import { wrap } from "node:module";
import { dirname, join } from "node:path";
import { Script } from "node:vm";
import { gitVersion, versionInfo } from "./lib/version.ts";

// The tiny entry: answers `--version` without reading the bundle, else runs the bundle with its V8 code cache.
// It is built into dist/entry.cjs, beside the bundle, and lends it its own `require`.

/** Set by scripts/build.mjs: names the cache that was made for exactly this bundle. */
declare const __BUILD_ID__: string;
declare const require: NodeJS.Require;

/** The answer to a lone version flag, or undefined when the command line asks for something else. */
function versionAnswer(args: readonly string[]): string | undefined {
  if (args.length !== 1) return undefined;
  if (args[0] === "--version" || args[0] === "--version=true") return `Kubernetes ${gitVersion}\n`;
  if (args[0] === "--version=raw") return `${JSON.stringify(versionInfo())}\n`;
  return undefined;
}

/** V8 refuses a cache of another version or with other flags by itself; a missing one costs only time. */
function readCache(folder: string): Buffer | undefined {
  try {
    return readFileSync(join(folder, `kubelet-${__BUILD_ID__}.cache`));
  } catch {
    return undefined;
  }
}

/** Latin-1, since the bundle is ASCII: half the memory of a two-byte string. */
function loadBundle(folder: string): void {
  const filename = join(folder, "kubelet.cjs");
  const cachedData = readCache(folder);
  const script = new Script(wrap(readFileSync(filename, "latin1")), {
    filename,
    ...(cachedData === undefined ? {} : { cachedData }),
  });
  const module = { exports: {} };
  // The wrapper of every CommonJS module: five parameters that Node fixed long ago.
  script.runInThisContext()(module.exports, require, module, filename, folder);
}

/** Straight to the descriptor: `process.stdout` alone takes longer than all of this. A reader that left is no error. */
function answer(descriptor: 1 | 2, text: string): void {
  try {
    writeSync(descriptor, text);
  } catch {
    process.exitCode = 1;
  }
}

/** Older ones lack what the bundle uses, and would fail in stranger ways. */
function isTooOld(node: string): boolean {
  const [major = 0, minor = 0] = node.split(".").map(Number);
  return major < 20 || (major === 20 && minor < 19);
}

process.title = "kubelet";
// Meant for this process, which has read it by now, and not for those that it starts.
delete process.env["MALLOC_ARENA_MAX"];
const version = versionAnswer(process.argv.slice(2));
if (version !== undefined) answer(1, version);
else if (isTooOld(process.versions.node)) {
  answer(2, `kubelet: needs Node 20.19 or newer (24 is best); this is ${process.version}\n`);
  process.exitCode = 1;
} else loadBundle(dirname(__filename));
