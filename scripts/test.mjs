// `npm test`: makes the machine ready, then the checks and the tests that a developer waits for. `npm test -- STAGE …` runs
// only those stages. What is left out is said at the end; with KUBELET_STRICT=1 (as .ci/run sets it) such a gap is a failure.
import "./require-node.mjs";
import { join } from "node:path";
import { fetchNodes } from "./node-versions.mjs";
import { installPackages } from "./packages.mjs";
import { CommandError, dim, green, red, run, say, seconds, table, yellow } from "./progress.mjs";
import { build, installNodeModules, root } from "./setup.mjs";

const strict = process.env.KUBELET_STRICT === "1";
const wanted = process.argv.slice(2);
const began = performance.now();
const failures = [];
/** Name, seconds and number of tests of each stage that ran. */
const stages = [];
/** Stages that are run only when they are named. */
const NAMED = new Set(["nodes", "chaos", "features"]);
/** What `.ci/run` tests besides. */
const ELSEWHERE = [
  "longer suites of single features (npm test -- features)",
  "unit and data-loss tests on newer releases of Node (npm test -- nodes)",
  "the agent killed a hundred times in the middle of its work (npm test -- chaos)",
  "suites on a real control plane (npm run test:cluster)",
  "suites that need another kernel or systemd (npm run test:vm)",
  "2000 more simulated lives of a pod (SIMULATION_SEEDS=2000 npm run test:unit -- pods/worker/simulation)",
];
/** What was left out: a word about it, and whether strict mode minds. */
const gaps = [];

const wants = (name) => (wanted.length === 0 ? !NAMED.has(name) : wanted.includes(name));
const bin = (name) => join(root, "node_modules/.bin", name);
const tsx = (node, ...args) => [node, "--import", "tsx", ...args];
const lastLine = (output) => dim(output.trimEnd().split("\n").at(-1) ?? "");

/** Runs one stage; a failure is noted and the rest goes on, so that one run shows everything. */
async function stage(name, work) {
  if (!wants(name)) return false;
  const since = performance.now();
  const ended = (result) => stages.push([name, ((performance.now() - since) / 1000).toFixed(1), result]);
  try {
    const tests = await work();
    ended(typeof tests === "number" ? String(tests) : "");
    return true;
  } catch (error) {
    ended("failed");
    failures.push(name);
    if (!(error instanceof CommandError)) say(red(error.stack ?? String(error)));
    return false;
  }
}

async function unit(node, version, part = "1/1") {
  const title = `unit tests on Node ${version}${part === "1/1" ? "" : `, part ${part}`}`;
  const env = { ...process.env, KUBELET_TEST_PART: part };
  const { output } = await run(title, tsx(node, "test/run.ts"), { cwd: root, env, note: lastLine });
  noteSkips(output);
  return Number(/^(\d+) passed/m.exec(output)?.[1]);
}

/**
 * Two processes, as many as a small machine has cores; the one with less to do begins after the checks. Both are heard out,
 * so that one run shows everything.
 */
async function unitInParts(checked) {
  const part = (name) => unit(process.execPath, process.versions.node, name);
  const ended = await Promise.allSettled([checked.then(() => part("1/2")), part("2/2")]);
  const failed = ended.find(({ status }) => status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return ended.reduce((sum, { value }) => sum + value, 0);
}

/** Skipped tests and suites, as both runners tell them. Strict mode has failed in the runner already if it minds. */
function noteSkips(output) {
  for (const [, text] of output.matchAll(/^(?:skipped|left out of) (.*)$/gm)) gaps.push({ text, forgiven: true });
}

/** Programs in Go that only tests need. What cannot be built is a gap that even strict mode forgives; a broken build is not. */
const BUILT = [
  { script: "build-containerd.mjs", variable: "CONTAINERD2_BIN_DIR", title: "containerd 2 for the contract tests" },
  { script: "build-runc.mjs", variable: "RUNC_BIN_DIR", title: "runc for the tests of user namespaces" },
  { script: "build-csi-sanity.mjs", variable: "CSI_SANITY_BIN_DIR", title: "csi-sanity for the driver of the tests" },
];

/** What the suites run: our bundle, also on a clone on which only these suites are asked for, and those programs. */
async function built() {
  await build();
  const env = {};
  for (const { script, variable, title } of BUILT) {
    const command = [process.execPath, join(root, "scripts", script)];
    const { code, stdout } = await run(title, command, { cwd: root, accept: [3, 77] });
    if (code === 0) env[variable] = stdout.trimEnd().split("\n").at(-1);
    else gaps.push({ text: `${title}: nothing on this machine to build it with`, forgiven: true });
  }
  return env;
}

/** Suites of the real world: the usual ones, or with `nodes` those that must hold on other releases of Node. */
async function suites(title, args, more) {
  // Chances of a race in each data-loss test: CI gives it all of them, a developer does not wait that long.
  const races = strict ? {} : { KUBELET_TEST_RACES: process.env.KUBELET_TEST_RACES ?? "2000" };
  const env = { ...process.env, TSX_DISABLE_CACHE: "1", ...races, ...more };
  const command = tsx(process.execPath, "test/integration/run.ts", ...args);
  const { output } = await run(title, command, { cwd: root, env, through: true });
  noteSkips(output);
  return sumOfTests(output);
}

/** The last column of the table that the runner of suites prints. */
function sumOfTests(output) {
  return [...output.matchAll(/^ {2}\S.* (\d+)$/gm)].reduce((sum, [, number]) => sum + Number(number), 0);
}

async function otherNodes() {
  const { nodes, gaps: missing } = await fetchNodes();
  gaps.push(...missing.map((text) => ({ text, forgiven: false })));
  const waiting = [...nodes];
  let tests = 0;
  // Two at once: a unit run keeps one core busy, and waits for nobody.
  const lane = async () => {
    for (let node = waiting.shift(); node !== undefined; node = waiting.shift()) {
      tests += await unit(node.path, node.version);
    }
  };
  await Promise.all([lane(), lane()]);
  const paths = nodes.map(({ path }) => path).join(":");
  if (paths === "") return tests;
  return tests + (await suites("data-loss tests on other releases", ["--nodes"], { KUBELET_TEST_NODES: paths }));
}

try {
  const missing = await installPackages({ forTests: true });
  if (missing.length > 0) gaps.push({ text: `what needs ${missing.join(", ")}: not installed`, forgiven: false });
  await installNodeModules();
} catch (error) {
  say(red(error instanceof CommandError ? error.message : String(error)));
  process.exit(1);
}

const checks = async () => {
  await stage("types", async () => {
    await run("types", [bin("tsc"), "--noEmit"], { cwd: root });
    await run("types of the page", [bin("tsc"), "--noEmit", "-p", "web"], { cwd: root });
  });
  await stage("format", () =>
    run("format", [bin("biome"), "ci", "--colors=off", "--reporter=summary", "."], { cwd: root }),
  );
  await stage("lint", () => run("lint", [process.execPath, "scripts/lint.mjs"], { cwd: root }));
  return stage("build", build);
};
const checked = checks();
await stage("unit", () => unitInParts(checked));
const isBuilt = await checked;
if (isBuilt || wanted.length > 0) {
  await stage("integration", async () => suites("contract and integration tests", [], await built()));
}
await stage("features", async () => suites("features", ["--features"], await built()));
await stage("chaos", async () => suites("chaos tests", ["--chaos"], await built()));
await stage("nodes", otherNodes);

for (const { text, forgiven } of gaps) say(yellow(`left out: ${text}${strict && forgiven ? " (allowed)" : ""}`));
if (strict && gaps.some(({ forgiven }) => !forgiven)) failures.push("gaps, with KUBELET_STRICT=1");
if (wanted.length === 0) for (const text of ELSEWHERE) say(dim(`not part of npm test: ${text}`));
say(table(["stage", "seconds", "tests"], stages));
const took = seconds(performance.now() - began);
if (failures.length === 0) say(green(`✓ all passed in ${took}`));
else say(red(`✗ failed: ${[...new Set(failures)].join(", ")} (${took})`));
process.exitCode = failures.length === 0 ? 0 : 1;
