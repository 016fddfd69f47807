import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import fc from "fast-check";

// Runs every unit test in one process: `tsx test/run.ts [PART-OF-A-PATH …] [-t NAME-PATTERN]`.
// The first process only watches: reporters can be set nowhere but on the command line, and a test process that
// hangs or dies in silence must not look like success.

const here = join(import.meta.dirname, "..");
/** Another root is for the test of this file. */
const root = process.env["KUBELET_TEST_ROOT"] ?? here;

/** How long nothing may be reported before the run counts as hung. */
const SILENCE_LIMIT_MS = 30_000;
/** And the whole run, should a test never let go of the event loop. */
const TIME_LIMIT_MS = 300_000;

/** Property tests try the same values each time; another number tries others. */
const PROPERTY_SEED = Number(process.env["KUBELET_PROPERTY_SEED"] ?? 20261116);

/** What the reporter counts; shared through the global object, because node loads the reporter by itself. */
interface TestState {
  passed: number;
  failed: number;
  skipped: number;
  readonly reported: Set<string>;
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
  return found.sort();
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
  const state: TestState = { passed: 0, failed: 0, skipped: 0, reported: new Set(), lastEvent: began, running: "none" };
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

  /** A contract's tests stand in the suite that its entry calls, so any test of the folder speaks for them. */
  const hasReported = (file: string): boolean => {
    const suites = join(root, "test/contract/");
    if (!file.startsWith("test/contract/")) return state.reported.has(join(root, file));
    return [...state.reported].some((reported) => reported.startsWith(suites));
  };
  process.on("exit", (code) => {
    for (const file of hung ? [] : files) {
      const silent = pattern === undefined && !hasReported(file);
      if (imported.has(file) && !silent) continue;
      state.failed++;
      process.stdout.write(
        `✗ ${file}: ${imported.has(file) ? "no test of it was reported" : "was not read to its end"}\n`,
      );
    }
    if (files.length === 0) process.stdout.write(`no test file matches ${filters.join(" ")}\n`);
    const took = ((performance.now() - began) / 1000).toFixed(1);
    const skipped = state.skipped > 0 ? `, ${state.skipped} skipped` : "";
    process.stdout.write(
      `${state.passed} passed, ${state.failed} failed${skipped} (${files.length} files, ${took} s, Node ${process.versions.node})\n`,
    );
    if (state.failed > 0 || files.length === 0 || code !== 0) process.exitCode = 1;
    process.send?.("finished");
  });

  fc.configureGlobal({ seed: PROPERTY_SEED });
  for (const file of files) {
    try {
      await import(pathToFileURL(join(root, file)).href);
      imported.add(file);
    } catch (error) {
      process.stdout.write(`✗ ${file}: ${error instanceof Error ? error.stack : String(error)}\n`);
    }
  }
  process.channel?.unref();
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
