import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { REPORTER_FLAGS, RESULTS } from "../suites/results.ts";

const INSIDE = "KUBELET_TEST_MOUNT_NAMESPACE";

/** The word with which this process was started inside a mount namespace of its own, or undefined outside. */
export function mountNamespace(): string | undefined {
  return process.env[INSIDE];
}

/**
 * Runs a test file once more in a mount namespace of its own, where `mountNamespace` answers with `word`: what is mounted
 * there is gone with it. Its tests count for the suite that it stands in. Answers with what was printed.
 */
export function runInMountNamespace(url: string, word = "1"): string {
  const env: NodeJS.ProcessEnv = { ...process.env, [INSIDE]: word };
  // Of the surrounding test runner: the inner one would speak its binary protocol.
  delete env.NODE_TEST_CONTEXT;
  const reporter = env[RESULTS] === undefined ? [] : REPORTER_FLAGS;
  const flags = [...process.execArgv.filter(isLoader), ...reporter];
  const command = ["--mount", "--propagation", "private", process.execPath, ...flags, fileURLToPath(url)];
  const inner = spawnSync("unshare", command, { env, encoding: "utf8" });
  assert.equal(inner.status, 0, `${inner.error ?? ""}\n${inner.stdout}\n${inner.stderr}`);
  assert.match(inner.stdout, /^# pass [1-9]|ℹ pass [1-9]/m);
  return inner.stdout;
}

function isLoader(flag: string, place: number, all: readonly string[]): boolean {
  const isName = (text: string | undefined): boolean => text === "--import" || text === "--require";
  return isName(flag) || isName(all[place - 1]) || /^--(import|require)=/.test(flag);
}
