import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import fc from "fast-check";
import { skipsNotAllowed } from "./allowed-skips.ts";
import { changesSince, processChanges, readProcessState, restoreProcess } from "./support/process-state.ts";
import { chooseSeed } from "./support/random.ts";

// Runs every unit test in one process: `tsx test/run.ts [PART-OF-A-PATH …] [-t NAME-PATTERN]`. KUBELET_TEST_PART=1/2 runs
// the first of two halves of the files.
// The first process only watches: reporters can be set nowhere but on the command line, and a test process that
// hangs or dies in silence must not look like success.

const here = join(import.meta.dirname, "..");
/** Another root is for the test of this file. */
const root = process.env["KUBELET_TEST_ROOT"] ?? here;

const STRICT = process.env["KUBELET_STRICT"] === "1";
/** Property tests try the same values each time; the variable KUBELET_PROPERTY_SEED chooses others. */
const PROPERTY_SEED = 20261116;
/** The name of a file's suite is this and its place in the list: no name pattern means it. */
const FILE_MARK = "·";
/** How many of the slowest files are named at the end. */
const SLOWEST = 8;

/** How long nothing may be reported before the run counts as hung. */
const SILENCE_LIMIT_MS = 30_000;
/** And the whole run, should a test never let go of the event loop. */
const TIME_LIMIT_MS = 600_000;

/** What the reporter counts; shared through the global object, because node loads the reporter by itself. */
interface TestState {
  passed: number;
  failed: number;
  readonly skipped: { readonly file: string; readonly test: string; readonly reason: string }[];
  /** The files in the order in which their tests run. */
  readonly files: readonly string[];
  readonly tookMs: Map<string, number>;
  /** How many tests of each file passed or failed. */
  readonly executed: Map<string, number>;
  lastEvent: number;
  /** The test that began last. */
  running: string;
}

/** Unit test files: no `*.root.test.ts`, nothing that needs the real world. */
function findTests(filters: readonly string[]): string[] {
  const found: string[] = [];
  for (const folder of ["src", "test"].filter((name) => existsSync(join(root, name)))) {
    for (const entry of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
      const path = join(folder, entry);
      if (!path.endsWith(".test.ts") || path.endsWith(".root.test.ts")) continue;
      if (/^test\/(integration|cluster|chaos)\//.test(path)) continue;
      if (filters.length === 0 || filters.some((filter) => path.includes(filter))) found.push(path);
    }
  }
  return found.sort().filter(isOfPart());
}

/** By KUBELET_TEST_PART: every second file of the list is of the second of two parts, and so on. */
function isOfPart(): (file: string, index: number) => boolean {
  const wanted = process.env["KUBELET_TEST_PART"] ?? "1/1";
  const [, part, parts] = (/^([1-9]\d*)\/([1-9]\d*)$/.exec(wanted) ?? []).map(Number);
  if (part === undefined || parts === undefined || part > parts) {
    throw new Error(`KUBELET_TEST_PART="${wanted}": must be PART/PARTS, as 1/2`);
  }
  return (_file, index) => index % parts === part - 1;
}

function parseArguments(args: readonly string[]): { filters: string[]; pattern: string | undefined } {
  const filters: string[] = [];
  let pattern: string | undefined;
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? "";
    if (arg === "-t") pattern = args[++index];
    else filters.push(relative(root, arg).startsWith("..") ? arg : arg.replace(/^\.\//, ""));
  }
  return { filters, pattern };
}

/** Runs in the first process. */
async function watch(): Promise<number> {
  const { pattern } = parseArguments(process.argv.slice(2));
  const reporter = pathToFileURL(join(here, "test/support/reporter.mjs")).href;
  const flags = [`--test-reporter=${reporter}`, "--test-reporter-destination=stdout"];
  if (pattern !== undefined) flags.push(`--test-name-pattern=${pattern}`);
  const child = spawn(
    process.execPath,
    [...process.execArgv, ...flags, import.meta.filename, ...process.argv.slice(2)],
    { cwd: here, stdio: ["ignore", "inherit", "inherit", "ipc"], env: childEnvironment() },
  );
  let finished = false;
  child.on("message", () => {
    finished = true;
  });
  const limit = setTimeout(() => child.kill("SIGKILL"), TIME_LIMIT_MS);
  const code = await new Promise<number | string>((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("exit", (status, signal) => resolve(signal ?? status ?? 1));
  });
  clearTimeout(limit);
  if (finished && typeof code === "number") return code;
  process.stdout.write(`the test process ended (${code}) before all tests had\n0 passed, 1 failed\n`);
  return 1;
}

/** node:test reports to a parent runner when it finds NODE_TEST_CONTEXT; here is none, whoever started us. */
function childEnvironment(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _ignored, ...env } = process.env;
  return { ...env, TSX_DISABLE_CACHE: "1", KUBELET_TEST_CHILD: "1", FORCE_COLOR: "0" };
}

/** Runs in the second process. */
async function runTests(): Promise<void> {
  const { filters, pattern } = parseArguments(process.argv.slice(2));
  const files = findTests(filters);
  const began = performance.now();
  const state: TestState = {
    passed: 0,
    failed: 0,
    skipped: [],
    files,
    tookMs: new Map(),
    executed: new Map(),
    lastEvent: began,
    running: "none",
  };
  Object.assign(globalThis, { [Symbol.for("kubelet.tests")]: state });

  const reallyExit = process.exit.bind(process);
  process.exit = ((code?: number): never => {
    throw new Error(`process.exit(${code ?? ""}) called in a test`);
  }) as typeof process.exit; // the same signature, written as an arrow function
  const imported = new Set<string>();
  let hung = false;
  setInterval(() => {
    if (performance.now() - state.lastEvent < SILENCE_LIMIT_MS) return;
    hung = true;
    state.failed++;
    process.stdout.write(
      `✗ nothing happened for ${SILENCE_LIMIT_MS / 1000} s in ${state.running}; open: ${openResources()}\n`,
    );
    reallyExit(1);
  }, 1000).unref();

  const seed = chooseSeed("KUBELET_PROPERTY_SEED", PROPERTY_SEED);
  process.on("exit", (code) => {
    for (const file of hung ? [] : files) {
      if (imported.has(file) && (pattern !== undefined || wasTested(state, file))) continue;
      state.failed++;
      process.stdout.write(`✗ ${file}: ${imported.has(file) ? "no test of it was run" : "was not read to its end"}\n`);
    }
    reportSkips(state);
    reportSlowest(state);
    if (files.length === 0) process.stdout.write(`no test file matches ${filters.join(" ")}\n`);
    const took = ((performance.now() - began) / 1000).toFixed(1);
    const skipped = state.skipped.length > 0 ? `, ${state.skipped.length} skipped` : "";
    process.stdout.write(
      `property seed ${seed} (again with KUBELET_PROPERTY_SEED=${seed})\n` +
        `${state.passed} passed, ${state.failed} failed${skipped} (${files.length} files, ${took} s, Node ${process.versions.node})\n`,
    );
    if (state.failed > 0 || files.length === 0 || code !== 0) process.exitCode = 1;
    process.send?.("finished");
  });

  fc.configureGlobal({ seed });
  await readFiles(files, imported);
  process.channel?.unref();
}

/** A file whose tests were all skipped was not tested; only strict mode minds. */
function wasTested(state: TestState, file: string): boolean {
  if ((state.executed.get(file) ?? 0) > 0) return true;
  return !STRICT && state.skipped.some((skipped) => skipped.file === file);
}

function reportSkips(state: TestState): void {
  const forbidden = new Set(STRICT ? skipsNotAllowed(state.skipped) : []);
  for (const skipped of state.skipped) {
    if (forbidden.has(skipped)) state.failed++;
    const mark = forbidden.has(skipped) ? "✗ skipped, and not in test/allowed-skips.ts:" : "skipped";
    process.stdout.write(`${mark} ${skipped.file}: ${skipped.test}: ${skipped.reason}\n`);
  }
}

/** The files that take longest: where to look when the run gets slow. */
function reportSlowest({ tookMs, executed, files }: TestState): void {
  if (files.length <= SLOWEST) return;
  const slowest = [...tookMs].sort(([, a], [, b]) => b - a).slice(0, SLOWEST);
  for (const [file, ms] of slowest) {
    process.stdout.write(`${(ms / 1000).toFixed(1).padStart(6)} s  ${file} (${executed.get(file) ?? 0} tests)\n`);
  }
}

/**
 * Reads every file into a suite of its own, so that its file-level hooks are its own too and what it leaves behind in the
 * process is seen. The first test holds all others back until the last file is read.
 */
async function readFiles(files: readonly string[], imported: Set<string>): Promise<void> {
  let release = (): void => undefined;
  const allRead = new Promise<void>((resolve) => {
    release = resolve;
  });
  void test(FILE_MARK, () => allRead);
  for (const [index, file] of files.entries()) {
    const atFirst = readProcessState();
    await new Promise<void>((resolve) => {
      void describe(`${FILE_MARK}${index}`, async () => {
        let found = atFirst;
        before(() => {
          found = readProcessState();
        });
        try {
          await import(pathToFileURL(join(root, file)).href);
          imported.add(file);
        } catch (error) {
          process.stdout.write(`✗ ${file}: ${error instanceof Error ? error.stack : String(error)}\n`);
        }
        // The last of the file's own hooks.
        after(async () => {
          const changes = [...whileRead, ...(await changesSince(found))];
          restoreProcess(found);
          if (changes.length > 0) throw new Error(`${file} leaves the process changed: ${changes.join(", ")}`);
        });
        const whileRead = processChanges(atFirst, readProcessState());
        restoreProcess(atFirst);
        resolve();
      });
    });
  }
  release();
}

function openResources(): string {
  return process.getActiveResourcesInfo().join(", ");
}

// No top-level await: without "type": "module" tsx runs this as CommonJS.
if (process.env["KUBELET_TEST_CHILD"] === "1") void runTests();
else {
  void watch().then((code) => {
    process.exitCode = code;
  });
}
