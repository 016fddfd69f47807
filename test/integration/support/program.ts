import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { join } from "node:path";
import { until } from "./until.ts";

const root = join(import.meta.dirname, "../../..");

/** The built agent, as users start it. */
export const KUBELET = join(root, "bin/kubelet");
export const EXAMPLES = join(root, "examples/pods");

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process that this suite started, with all that it wrote. */
export class Program {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stdout = "";
  stderr = "";
  private hasEnded = false;

  constructor(command: readonly string[], options: SpawnOptions = {}) {
    const [file = "", ...args] = command;
    this.child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.ended = new Promise((resolve, reject) => {
      this.child.once("error", reject);
      // `exit` where nobody reads the output: `close` would wait for whoever holds the pipe.
      const event = this.child.stdout === null ? "exit" : "close";
      this.child.once("exit", () => {
        this.hasEnded = true;
      });
      this.child.once(event, (code: number | null, signal: NodeJS.Signals | null) =>
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr }),
      );
    });
    this.ended.catch(() => undefined);
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  get isOver(): boolean {
    return this.hasEnded;
  }

  /** Sends the signal and waits for the end. */
  async end(signal: NodeJS.Signals): Promise<Ended> {
    if (!this.hasEnded) this.child.kill(signal);
    return this.ended;
  }

  /** Waits until its standard output has these words. */
  async says(words: RegExp | string): Promise<void> {
    const has = (): boolean => (typeof words === "string" ? this.stdout.includes(words) : words.test(this.stdout));
    await until(`the words ${words}`, has, { seen: () => this.stdout });
  }
}

/** Runs `kubelet ARGS` to its end. */
export function kubelet(args: readonly string[], options: SpawnOptions = {}): Promise<Ended> {
  return new Program([KUBELET, ...args], options).ended;
}
