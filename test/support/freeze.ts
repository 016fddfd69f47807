import { readdir, readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";

/**
 * Stops a process with SIGSTOP and returns once every thread of it stands still: the signal itself returns at once,
 * and a thread on another core goes on for as long as it takes to reach the kernel, which can be one whole answer.
 */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  const until = performance.now() + 10_000;
  while (!(await standsStill(pid))) {
    if (performance.now() > until) throw new Error(`process ${pid} does not stop`);
    await pause(5);
  }
}

export function thaw(pid: number): void {
  process.kill(pid, "SIGCONT");
}

async function standsStill(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`);
  const states = await Promise.all(threads.map((thread) => readState(`/proc/${pid}/task/${thread}/stat`)));
  return states.every((state) => state === "T" || state === undefined);
}

/** The letter behind the name, which is in brackets and may hold blanks; undefined for a thread that is gone. */
async function readState(path: string): Promise<string | undefined> {
  const line = await readFile(path, "utf8").catch(() => undefined);
  return line?.slice(line.lastIndexOf(")") + 2)[0];
}
