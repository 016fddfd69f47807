import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Clock, Timer } from "../../lib/clock.ts";
import type { GroupChange, GroupOptions } from "./group.ts";
import type { GroupMessage } from "./group-child.ts";
import { HostError } from "./host-error.ts";

/** A walk that makes no progress for this long, in milliseconds, hangs: progress is a thousand files. */
const STILL_MS = 120_000;

/**
 * Gives a volume to a group in a child process: what is on a server or on a disk that may be gone would otherwise hold
 * threads of the agent. The child is killed at an abort, and when it makes no progress.
 */
export function changeGroupInChild(
  clock: Clock,
  path: string,
  request: GroupChange & GroupOptions & { readonly program?: string },
): Promise<void> {
  const { signal = new AbortController().signal, onProgress, program = programPath(), ...change } = request;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const what = `change group of ${path} to ${change.gid}`;
    const child = fork(program, [JSON.stringify({ path, ...change })], { stdio: "ignore" });
    let timer: Timer | undefined;
    const end = (finish: () => void): void => {
      timer?.cancel();
      signal.removeEventListener("abort", onAbort);
      child.kill("SIGKILL");
      // One that hangs in the kernel would never end: it is not waited for.
      child.removeAllListeners();
      child.on("error", () => undefined);
      if (child.connected) child.disconnect();
      child.unref();
      finish();
    };
    const fail = (error: Error): void => end(() => reject(error));
    const onAbort = (): void => fail(signal.reason as Error); // reason: aborts of this project carry errors
    const watch = (): void => {
      timer?.cancel();
      const words = `${what}: no progress within ${STILL_MS / 1000} s`;
      timer = clock.after(STILL_MS, () => fail(new HostError("Timeout", words)));
    };
    child.on("error", (error) => fail(new HostError("Unknown", `${what}: ${error.message}`)));
    child.on("exit", (code) => fail(new HostError("Unknown", `${what}: its process ended with ${code}`)));
    child.on("message", (message) => {
      const told = message as GroupMessage; // reason: the child is ours
      if ("isDone" in told) return end(resolve);
      if ("error" in told) return fail(new HostError("Unknown", `${what}: ${told.error}`));
      watch();
      onProgress?.(told.entries);
    });
    signal.addEventListener("abort", onAbort, { once: true });
    watch();
  });
}

/** Beside this file: `group-child.cjs` in the bundle, from source the TypeScript file. */
function programPath(): string {
  const here = import.meta.dirname;
  const found = ["group-child.cjs", "group-child.ts"].map((name) => join(here, name)).find((path) => existsSync(path));
  if (found === undefined) throw new HostError("Unsupported", "the program that changes groups is missing");
  return found;
}
