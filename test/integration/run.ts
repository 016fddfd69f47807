import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { progress, say, seconds, tail } from "../../scripts/progress.mjs";
import { cleanUp, MARK, type Machine, newcomers, readMachine } from "./support/machine.ts";

// Runs each suite that needs the real world as a process of its own, one after the other (some in pairs), and looks at
// the machine before and after: a suite that leaves something behind has failed.
// Usage: tsx test/integration/run.ts [PART-OF-A-PATH …]

const root = join(import.meta.dirname, "../..");

/** A suite says with this exit code that it cannot run here; the last line that it wrote is the reason. */
const SKIPPED = 77;
const SLOWNESS = Number(process.env["KUBELET_TEST_SLOW"] ?? 1);
const TIME_LIMIT_MS = Number(process.env["KUBELET_TEST_LIMIT_MS"] ?? 600_000 * SLOWNESS);
/** Suites that mostly wait and measure no times: these two and two run at the same time. */
const PAIRS: readonly (readonly [string, string])[] = [
  ["agent-faults", "agent-files"],
  ["agent-sources", "server-memory"],
  ["config-live", "lifecycle-containerd2"],
  ["embedded-runtime", "preemption"],
  ["kill-agent", "kill-volumes"],
  ["lifecycle-ends", "volumes"],
  ["lifecycle-inside", "lifecycle-pods"],
];
/** What is on its way out (a shim, an unmount) may take this long to be gone. */
const SETTLE_MS = 20_000 * SLOWNESS;

interface Suite {
  readonly name: string;
  readonly file: string;
  readonly node: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Measures no times and shares nothing of the machine, so that two with the same word here may run beside each other. */
  readonly beside?: string | undefined;
}

interface Outcome {
  readonly suite: Suite;
  readonly result: "passed" | "failed" | "skipped";
  readonly reason: string;
  readonly tookMs: number;
}

/** Other Node releases for the data-loss tests, which must hold on all of them. */
const otherNodes = (process.env["KUBELET_TEST_NODES"] ?? "").split(":").filter((path) => path !== "");

function findSuites(filters: readonly string[]): Suite[] {
  const list = (folder: string): string[] =>
    existsSync(join(root, folder))
      ? readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => join(folder, name))
      : [];
  const here = process.execPath;
  // What a race finds does not depend on the release of Node: the others run fewer.
  const fewer = { KUBELET_TEST_RACES: "500" };
  const integration = list("test/integration").filter(
    (file) => /^test\/integration\/[^/]+\.ts$/.test(file) && basename(file) !== "run.ts",
  );
  const chaos = list("test/chaos").filter((file) => /^test\/chaos\/[^/]+\.ts$/.test(file));
  const dataLoss = list("src").filter((file) => file.endsWith(".root.test.ts"));
  const suites = [
    ...dataLoss
      .sort()
      .flatMap((file) =>
        [here, ...otherNodes].map((node) => ({ ...suiteOf(file, node), ...(node !== here && { env: fewer }) })),
      ),
    ...contractSuites(here),
    ...[...integration.sort(), ...chaos.sort()].map((file) => {
      const pair = PAIRS.find((names) => names.includes(basename(file, ".ts")));
      return { name: file, file, node: here, beside: pair?.join() };
    }),
  ];
  return suites.filter(({ file }) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
}

/** One contract, each runtime that this machine has: Debian's containerd 1.6, and 2.x where it could be built. */
function contractSuites(node: string): Suite[] {
  const file = "test/contract/runtime-containerd.ts";
  const built = process.env["CONTAINERD2_BIN_DIR"] ?? "";
  return [
    { name: `${file} on the system's containerd`, file, node, beside: "contract", env: { CONTAINERD_BIN_DIR: "" } },
    ...(built === ""
      ? []
      : [{ name: `${file} on containerd 2`, file, node, beside: "contract", env: { CONTAINERD_BIN_DIR: built } }]),
  ];
}

function suiteOf(file: string, node: string): Suite {
  return { name: nameOf(file, node), file, node, beside: "root" };
}

function nameOf(file: string, node: string): string {
  const version = /node-(\d+\.\d+\.\d+)\//.exec(node)?.[1] ?? process.versions.node;
  return `${file} on Node ${version}`;
}

/** Runs one suite; the whole process group ends with it. */
async function runSuite(
  suite: Suite,
  temp: string,
  onLine: (line: string) => void,
): Promise<{ code: number | string; output: string }> {
  const child = spawn(suite.node, ["--import", "tsx", suite.file], {
    cwd: root,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...suite.env, TSX_DISABLE_CACHE: "1", TMPDIR: temp, [MARK]: temp },
  });
  let output = "";
  const take = (chunk: string): void => {
    output = (output + chunk).slice(-1_000_000);
    onLine(chunk.trimEnd().split("\n").at(-1) ?? "");
  };
  child.stdout.setEncoding("utf8").on("data", take);
  child.stderr.setEncoding("utf8").on("data", take);
  let late = false;
  const limit = setTimeout(() => {
    late = true;
    endGroup(child.pid, "SIGTERM");
    setTimeout(() => endGroup(child.pid, "SIGKILL"), 10_000).unref();
  }, TIME_LIMIT_MS);
  const code = await new Promise<number | string>((resolve) => {
    child.on("error", (error) => resolve(error.message));
    // `exit`, not `close`: a process left behind may hold the pipe open, and is found afterwards.
    child.on("exit", (status, signal) => resolve(signal ?? status ?? 1));
  });
  clearTimeout(limit);
  await new Promise((resolve) => setTimeout(resolve, 50));
  child.stdout.destroy();
  child.stderr.destroy();
  return { code: late ? `not done after ${TIME_LIMIT_MS / 1000} s` : code, output };
}

function endGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It is gone already.
  }
}

/** What is there that was not there before, once everything on its way out had time to go. */
async function leftBehind(before: Machine, temp: string): Promise<string[]> {
  const until = performance.now() + SETTLE_MS;
  for (;;) {
    const found = newcomers(before, readMachine(temp));
    if (found.length === 0 || performance.now() > until) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Suites that run at the same time: what any of them left behind is looked for when all have ended. */
async function runBatch(suites: readonly Suite[]): Promise<Outcome[]> {
  // Short names: a unix socket's path has 107 bytes.
  const places = suites.map((suite) => ({ suite, temp: mkdtempSync(join(tmpdir(), "kt-")) }));
  const before = new Map(places.map(({ temp }) => [temp, readMachine(temp)]));
  const ended = await Promise.all(
    places.map(async ({ suite, temp }) => {
      const began = performance.now();
      const line = progress(suite.name);
      const { code, output } = await runSuite(suite, temp, (text) => line.update(text));
      return { suite, temp, line, code, output, tookMs: performance.now() - began };
    }),
  );
  const outcomes: Outcome[] = [];
  for (const run of ended) {
    const left = await leftBehind(before.get(run.temp) ?? new Set(), run.temp);
    outcomes.push(await judge(run, left));
  }
  return outcomes;
}

interface Ended {
  readonly suite: Suite;
  readonly temp: string;
  readonly line: ReturnType<typeof progress>;
  readonly code: number | string;
  readonly output: string;
  readonly tookMs: number;
}

async function judge({ suite, temp, line, code, output, tookMs }: Ended, left: readonly string[]): Promise<Outcome> {
  const finish = (result: Outcome["result"], reason: string): Outcome => {
    if (result === "passed") line.done();
    else line[result](reason);
    return { suite, result, reason, tookMs };
  };
  if (left.length > 0) await cleanUp(temp);
  rmSync(temp, { recursive: true, force: true, maxRetries: 3 });
  const lastLine = output.trimEnd().split("\n").at(-1) ?? "";
  if (code === SKIPPED && left.length === 0) return finish("skipped", lastLine);
  if (code === 0 && left.length === 0) return finish("passed", "");
  const reason =
    code === 0 || code === SKIPPED ? "left something behind" : typeof code === "number" ? `exit code ${code}` : code;
  const outcome = finish("failed", reason);
  say(tail(output, 80));
  for (const what of left) say(`    left behind: ${what}`);
  return outcome;
}

/** Two at a time where both allow it; else in the order of the list. */
function batches(suites: readonly Suite[]): Suite[][] {
  const result: Suite[][] = [];
  for (const suite of suites) {
    const partner = result.find(
      ([first, second]) => suite.beside !== undefined && second === undefined && first?.beside === suite.beside,
    );
    if (partner === undefined) result.push([suite]);
    else partner.push(suite);
  }
  return result;
}

async function main(): Promise<number> {
  const suites = findSuites(process.argv.slice(2));
  if (suites.length === 0) {
    say("no suite was found\n0 passed, 1 failed, 0 skipped");
    return 1;
  }
  const outcomes: Outcome[] = [];
  if (process.getuid?.() === 0) for (const batch of batches(suites)) outcomes.push(...(await runBatch(batch)));
  else for (const suite of suites) outcomes.push({ suite, result: "skipped", reason: "needs root", tookMs: 0 });
  const count = (result: Outcome["result"]): number => outcomes.filter((outcome) => outcome.result === result).length;
  for (const { suite, result, reason } of outcomes) if (result === "skipped") say(`skipped ${suite.name}: ${reason}`);
  const total = seconds(outcomes.reduce((sum, { tookMs }) => sum + tookMs, 0));
  for (const { suite, result, reason } of outcomes) if (result === "failed") say(`failed ${suite.name}: ${reason}`);
  say(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped (${total})`);
  return count("failed") === 0 ? 0 : 1;
}

void main().then((code) => {
  process.exitCode = code;
});
