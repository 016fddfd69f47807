import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { progress, say, seconds, table, tail } from "../../scripts/progress.mjs";
import { readDurations, writeDurations } from "../suites/durations.ts";
import { findSuites, type Kind, type Suite } from "../suites/find.ts";
import { longestFirst, runInLanes } from "../suites/lanes.ts";
import { Leftovers } from "../suites/leftovers.ts";
import { runSuite } from "../suites/process.ts";
import { judge, type Outcome, readResults } from "../suites/results.ts";
import { PREFIX } from "../support/mark.ts";
import { cleanUp, readMachine } from "./support/machine.ts";

// Runs each suite that needs the real world as a process of its own, two at a time, and looks at the machine before and
// after: a suite that leaves something behind has failed, and so has one that runs no test.
// Usage: tsx test/integration/run.ts [--features | --chaos | --cluster | --nodes] [PART-OF-A-PATH …]

const STRICT = process.env["KUBELET_STRICT"] === "1";
/** The kinds of suites that have to be named; without one the usual ones run. */
const KINDS: readonly Kind[] = ["features", "chaos", "cluster", "nodes"];
/** Suites at a time: most of them mostly wait. In a slow machine one has enough to do. */
const LANES = Number(process.env["KUBELET_TEST_LANES"] ?? 2);
/** What is on its way out (a shim, an unmount) may take this long to be gone. */
const SETTLE = {
  limitMs: 20_000 * Number(process.env["KUBELET_TEST_SLOW"] ?? 1),
  pause: () => new Promise<void>((resolve) => setTimeout(resolve, 100)),
  now: () => performance.now(),
};

/**
 * What the portmap plug-in makes for the first host port of a machine and keeps for all later ones. `kubelet down` removes
 * it; the runtime of the cluster suites is nobody's to take down.
 */
const HOST_PORTS = /^iptables nat (?!.*CNI-DN-).*CNI-HOSTPORT-(DNAT|MASQ|SETMARK)/;

interface Done extends Outcome {
  readonly suite: Suite;
  readonly mark: string;
  readonly tookMs: number;
}

async function runOne(suite: Suite, leftovers: Leftovers): Promise<Done> {
  const temp = mkdtempSync(join(tmpdir(), PREFIX));
  const results = `${temp}.results`;
  leftovers.begin(temp);
  const began = performance.now();
  const line = progress(suite.name);
  const { code, output } = await runSuite(suite, { temp, results }, (text) => line.update(text));
  const tookMs = performance.now() - began;
  const left = [...(await leftovers.end(temp, SETTLE)), ...filesIn(temp)];
  if (left.length > 0) await cleanUp(temp);
  const outcome = judge({ file: suite.file, code, output, results: readResults(results), left }, STRICT);
  rmSync(temp, { recursive: true, force: true, maxRetries: 3 });
  rmSync(results, { force: true });
  const { result, reason, tests, skips } = outcome;
  if (result === "passed") line.done(`${tests} passed${skips.length > 0 ? `, ${skips.length} skipped` : ""}`);
  else line[result](reason);
  if (result === "failed") say(tail(output, 80));
  for (const what of left) say(`    left behind: ${what}`);
  return { ...outcome, suite, mark: temp, tookMs };
}

/** What the suite did not remove from its temporary directory, save the caches of node and tsx. */
function filesIn(temp: string): string[] {
  const own = readdirSync(temp).filter((name) => !name.startsWith("tsx-") && !name.startsWith("node-compile"));
  return own.map((name) => `file ${join(temp, name)}`);
}

/** What was left behind is named up to this number. */
const SHOWN_LEFTOVERS = 20;

/** Runs them all; what was left behind without a suite's mark on it falls to each suite that may have left it. */
async function runAll(suites: readonly Suite[]): Promise<Done[]> {
  const leftovers = new Leftovers(readMachine);
  const done: Done[] = [];
  await runInLanes(longestFirst(suites, readDurations()), LANES, async (suite) => {
    done.push(await runOne(suite, leftovers));
  });
  const rest = await leftovers.rest(SETTLE);
  return done.map((one) => {
    const isOfNetwork = (what: string): boolean => one.suite.file.startsWith("test/cluster/") && HOST_PORTS.test(what);
    const left = rest.filter(({ what, suspects }) => suspects.includes(one.mark) && !isOfNetwork(what));
    if (left.length === 0) return one;
    const shown = left.slice(0, SHOWN_LEFTOVERS).map(({ what }) => what);
    if (left.length > shown.length) shown.push(`${left.length - shown.length} more`);
    const reason = `${shown.join(", ")} left behind by it, or by a suite beside it`;
    return { ...one, result: "failed", reason: one.reason === "" ? reason : `${one.reason}; ${reason}` };
  });
}

function notRoot(suites: readonly Suite[]): Done[] {
  return suites.map((suite) => ({
    suite,
    result: STRICT ? "failed" : "skipped",
    reason: "needs root",
    tests: 0,
    skips: [],
    mark: "",
    tookMs: 0,
  }));
}

function report(done: readonly Done[], tookMs: number): void {
  for (const { suite, result, reason, skips } of done) {
    for (const { test, reason: why, isAllowed } of skips) {
      say(`left out of ${suite.name}: ${test}: ${why}${isAllowed ? " (on the list)" : ""}`);
    }
    if (result === "skipped") say(`skipped ${suite.name}: ${reason}`);
  }
  for (const { suite, result, reason } of done) if (result === "failed") say(`failed ${suite.name}: ${reason}`);
  const rows = [...done].sort((a, b) => b.tookMs - a.tookMs);
  say(
    table(
      ["suite", "seconds", "tests"],
      rows.map(({ suite, tookMs, tests }) => [suite.name, (tookMs / 1000).toFixed(1), String(tests)]),
    ),
  );
  const count = (result: Outcome["result"]): number => done.filter((one) => one.result === result).length;
  say(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped (${seconds(tookMs)})`);
}

async function main(): Promise<number> {
  const args = process.argv.slice(2);
  const kind = KINDS.find((name) => args.includes(`--${name}`)) ?? "usual";
  const suites = findSuites(
    kind,
    args.filter((arg) => !arg.startsWith("--")),
  );
  if (suites.length === 0) {
    say("no suite was found\n0 passed, 1 failed, 0 skipped");
    return 1;
  }
  const began = performance.now();
  const done = process.getuid?.() === 0 ? await runAll(suites) : notRoot(suites);
  const passed = done.filter(({ result }) => result === "passed");
  writeDurations(Object.fromEntries(passed.map(({ suite, tookMs }) => [suite.name, Math.round(tookMs / 1000)])));
  report(done, performance.now() - began);
  return done.some(({ result }) => result === "failed") ? 1 : 0;
}

void main().then((code) => {
  process.exitCode = code;
});
