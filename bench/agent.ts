import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/** The built agent in a process of its own, as a user runs it. */
export class BenchAgent {
  private constructor(private readonly child: ChildProcess) {}

  /** Resolves when the agent says that its ports are open. */
  static async start(
    places: { pods: string; state: string },
    flags: readonly string[] = [],
  ): Promise<{ agent: BenchAgent; tookMs: number }> {
    const began = performance.now();
    const args = [
      "up",
      "--pods",
      places.pods,
      "--state-dir",
      places.state,
      "--cadvisor-port",
      "0",
      "--healthz-port",
      "0",
      "--read-only-port",
      "0",
      ...flags,
    ];
    const child = spawn(join(root, "bin/kubelet"), args, { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise<void>((resolve, reject) => {
      let text = "";
      child.stdout.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (/\bruntime \S+ /.test(text)) resolve();
      });
      child.on("exit", (code) => reject(new Error(`the agent ended with ${code}: ${text}`)));
      child.on("error", reject);
    });
    return { agent: new BenchAgent(child), tookMs: performance.now() - began };
  }

  /** Ctrl-C: the pods and containerd go on. */
  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGINT");
    await ended;
  }

  /** Seconds of CPU that the process has used so far. */
  cpuSeconds(): number {
    return secondsIn(`/proc/${this.child.pid}/stat`);
  }

  /** Seconds of CPU of its main thread alone. */
  mainThreadSeconds(): number {
    return secondsIn(`/proc/${this.child.pid}/task/${this.child.pid}/stat`);
  }

  residentMb(): number {
    const status = readFileSync(`/proc/${this.child.pid}/status`, "latin1");
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
  }
}

export function secondsIn(path: string): number {
  const stat = readFileSync(path, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Runs a command of the built agent to its end and returns how long it took, in milliseconds. */
export function timeCommand(command: string, args: readonly string[]): Promise<number> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: "ignore" });
    child.on("error", reject);
    child.on("exit", (code) => {
      if (code === 0) resolve(performance.now() - began);
      else reject(new Error(`${command} ${args.join(" ")} ended with ${code}`));
    });
  });
}

/** Takes away all that the benchmark made. */
export async function tearDown(state: string): Promise<void> {
  await timeCommand(join(root, "bin/kubelet"), ["down", "--state-dir", state]);
}
