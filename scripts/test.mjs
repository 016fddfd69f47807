// `npm test`: makes the machine ready, then every check and every test there is. `npm test -- STAGE …` runs only those.
// What cannot run here is said at the end; with KUBELET_STRICT=1 (as .ci/run sets it) such a gap is a failure.
import "./require-node.mjs";
import { join } from "node:path";
import { fetchNodes } from "./node-versions.mjs";
import { installPackages } from "./packages.mjs";
import { CommandError, dim, green, red, run, say, seconds, yellow } from "./progress.mjs";
import { build, installNodeModules, root } from "./setup.mjs";

const strict = process.env.KUBELET_STRICT === "1";
const wanted = process.argv.slice(2);
const began = performance.now();
const failures = [];
/** What was left out: a word about it, and whether strict mode minds. */
const gaps = [];

const bin = (name) => join(root, "node_modules/.bin", name);
const tsx = (node, ...args) => [node, "--import", "tsx", ...args];
const lastLine = (output) => dim(output.trimEnd().split("\n").at(-1) ?? "");

/** Runs one stage; a failure is noted and the rest goes on, so that one run shows everything. */
async function stage(name, work) {
  if (wanted.length > 0 && !wanted.includes(name)) return false;
  try {
    await work();
    return true;
  } catch (error) {
    failures.push(name);
    if (!(error instanceof CommandError)) say(red(error.stack ?? String(error)));
    return false;
  }
}

async function unit(node, version) {
  const title = `unit tests on Node ${version}`;
  await run(title, tsx(node, "test/run.ts"), { cwd: root, note: lastLine });
}

/** Programs in Go that only tests need. What cannot be built is a gap that even strict mode forgives; a broken build is not. */
const BUILT = [
  { script: "build-containerd.mjs", variable: "CONTAINERD2_BIN_DIR", title: "containerd 2 for the contract tests" },
  { script: "build-runc.mjs", variable: "RUNC_BIN_DIR", title: "runc for the tests of user namespaces" },
];

async function built() {
  const env = {};
  for (const { script, variable, title } of BUILT) {
    const command = [process.execPath, join(root, "scripts", script)];
    const { code, stdout } = await run(title, command, { cwd: root, accept: [3, 77] });
    if (code === 0) env[variable] = stdout.trimEnd().split("\n").at(-1);
    else gaps.push({ text: `${title}: nothing on this machine to build it with`, forgiven: true });
  }
  return env;
}

async function integration(nodes) {
  const env = { ...process.env, ...(await built()), TSX_DISABLE_CACHE: "1" };
  env.KUBELET_TEST_NODES = nodes.map(({ path }) => path).join(":");
  const command = tsx(process.execPath, "test/integration/run.ts");
  const { output } = await run("contract and integration tests", command, { cwd: root, env, through: true });
  for (const [, text] of output.matchAll(/^skipped (.*)$/gm)) gaps.push({ text, forgiven: false });
}

try {
  const missing = await installPackages({ forTests: true });
  if (missing.length > 0) gaps.push({ text: `what needs ${missing.join(", ")}: not installed`, forgiven: false });
  await installNodeModules();
} catch (error) {
  say(red(error instanceof CommandError ? error.message : String(error)));
  process.exit(1);
}

await Promise.all([
  stage("format", () => run("format", [bin("biome"), "ci", "--colors=off", "--reporter=summary", "."], { cwd: root })),
  stage("lint", () => run("lint", [process.execPath, "scripts/lint.mjs"], { cwd: root })),
  stage("types", () => run("types", [bin("tsc"), "--noEmit"], { cwd: root })),
]);
const isBuilt = await stage("build", build);
let nodes = [];
if (wanted.length === 0 || wanted.includes("nodes") || wanted.includes("integration")) {
  const fetched = await fetchNodes();
  nodes = fetched.nodes;
  gaps.push(...fetched.gaps.map((text) => ({ text, forgiven: false })));
}
const units = [
  () => stage("unit", () => unit(process.execPath, process.versions.node)),
  ...nodes.map(
    ({ version, path }) =>
      () =>
        stage("nodes", () => unit(path, version)),
  ),
];
// Two at once: a unit run keeps one core busy, and waits for nobody.
const lane = async () => {
  for (let next = units.shift(); next !== undefined; next = units.shift()) await next();
};
await Promise.all([lane(), lane()]);
if (isBuilt || wanted.length > 0) await stage("integration", () => integration(nodes));

for (const { text, forgiven } of gaps) say(yellow(`left out: ${text}${strict && forgiven ? " (allowed)" : ""}`));
if (strict && gaps.some(({ forgiven }) => !forgiven)) failures.push("gaps, with KUBELET_STRICT=1");
const took = seconds(performance.now() - began);
if (failures.length === 0) say(green(`✓ all passed in ${took}`));
else say(red(`✗ failed: ${[...new Set(failures)].join(", ")} (${took})`));
process.exitCode = failures.length === 0 ? 0 : 1;
