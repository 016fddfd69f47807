import { spawn } from "node:child_process";
import { MARK } from "../support/mark.ts";
import { root, type Suite } from "./find.ts";
import { REPORTER_FLAGS, RESULTS } from "./results.ts";

const SLOWNESS = Number(process.env["KUBELET_TEST_SLOW"] ?? 1);
const TIME_LIMIT_MS = Number(process.env["KUBELET_TEST_LIMIT_MS"] ?? 600_000 * SLOWNESS);

export interface Place {
  /** The temporary directory of the suite, and its mark. */
  readonly temp: string;
  /** Where its results are written. */
  readonly results: string;
}

/** Runs one suite; the whole process group ends with it. */
export async function runSuite(
  suite: Suite,
  { temp, results }: Place,
  onLine: (line: string) => void,
): Promise<{ code: number | string; output: string }> {
  const chosen = suite.pattern === undefined ? [] : [`--test-name-pattern=${suite.pattern}`];
  const child = spawn(suite.node, ["--import", "tsx", ...REPORTER_FLAGS, ...chosen, suite.file], {
    cwd: root,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...suite.env, TSX_DISABLE_CACHE: "1", TMPDIR: temp, [MARK]: temp, [RESULTS]: results },
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
