// Turns proto/NAME/*.proto into the committed codecs of src/adapters/NAME/generated/. Run it after a change in proto/.
// With --check it changes nothing and fails when the committed files are not what proto/ gives.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
/**
 * proto/cri: what runtimes speak; proto/plugins: what plugins of the node speak; proto/otlp: what takes spans;
 * proto/devices: what device plugins and readers of pod resources speak.
 */
const GROUPS = ["cri", "plugins", "otlp", "devices"];
const targetOf = (group) => join(root, "src/adapters", group, "generated");

/** Services are left out: methods.ts names the few that are called, so that a bundler drops every other codec. */
const OPTIONS = [
  "forceLong=bigint", // the default throws on the first nanosecond time
  "outputJsonMethods=false",
  "outputServices=none",
  "useExactTypes=false",
  "enumsAsLiterals=true",
  "unrecognizedEnum=false",
  "env=node",
  "esModuleInterop=true",
  "importSuffix=.ts",
];

function generate(group, out) {
  const template = {
    version: "v2",
    clean: true,
    plugins: [{ local: join(root, "node_modules/.bin/protoc-gen-ts_proto"), out, opt: OPTIONS, include_imports: true }],
  };
  const args = ["generate", join("proto", group), "--template", JSON.stringify(template)];
  const run = spawnSync(join(root, "node_modules/.bin/buf"), args, { cwd: root, stdio: "inherit" });
  if (run.status !== 0) throw new Error(`buf ended with ${run.signal ?? `code ${run.status}`}`);
}

/** Relative path → content of every file below a directory. */
function contents(dir) {
  const files = new Map();
  for (const name of readdirSync(dir, { recursive: true })) {
    const path = join(dir, name);
    if (statSync(path).isFile()) files.set(relative(dir, path), readFileSync(path, "utf8"));
  }
  return files;
}

function check(group) {
  const work = mkdtempSync(join(tmpdir(), "generate-proto-"));
  try {
    generate(group, work);
    const want = contents(work);
    const have = contents(targetOf(group));
    const names = new Set([...want.keys(), ...have.keys()]);
    return [...names].filter((name) => want.get(name) !== have.get(name));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

for (const group of GROUPS) {
  if (!process.argv.includes("--check")) {
    generate(group, targetOf(group));
    continue;
  }
  for (const name of check(group)) {
    console.error(`src/adapters/${group}/generated/${name} is stale: run node scripts/generate-proto.mjs`);
    process.exitCode = 1;
  }
}
