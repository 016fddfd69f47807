import assert from "node:assert/strict";
import { type SpawnOptions, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Pod } from "../../src/model/generated/types.ts";
import { type Ended, Program } from "../integration/support/program.ts";
import type { Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import { kubeBinDir } from "./control-plane.ts";

const KUBECTL = join(kubeBinDir(), "kubectl");
export const WITH_INPUT: SpawnOptions = { stdio: ["pipe", "pipe", "pipe"] };

/** Ends this process with the runner's word for "not here" unless kubectl has been built. */
export function skipWithoutKubectl(): void {
  if (existsSync(KUBECTL)) return;
  process.stdout.write("needs kubectl: npm run test:cluster builds it\n");
  process.exit(77);
}

/** The real kubectl with the kubeconfig that the agent of a site has written. */
export class LocalKubectl {
  private readonly started: Program[] = [];

  constructor(private readonly site: Site) {}

  get kubeconfig(): string {
    return join(this.site.state, "kubeconfig");
  }

  /** The file in which kubectl on a terminal leaves its name. */
  get terminalName(): string {
    return join(this.site.dir, "terminal");
  }

  /** Starts kubectl; it goes on by itself. */
  begin(args: readonly string[], options: SpawnOptions = {}): Program {
    const program = new Program(this.command(args), { env: this.env, ...options });
    this.started.push(program);
    return program;
  }

  /** kubectl on a terminal of its own, 77 wide and 33 high. */
  beginOnTerminal(args: readonly string[]): Program {
    const words = this.command(args).map((word) => `'${word}'`);
    const line = `stty rows 33 cols 77; tty > ${this.terminalName}; exec ${words.join(" ")}`;
    const env = { ...this.env, SHELL: "/bin/sh", TERM: "xterm" };
    const program = new Program(["script", "-qec", line, "/dev/null"], { ...WITH_INPUT, env });
    this.started.push(program);
    return program;
  }

  run(...args: readonly string[]): Promise<Ended> {
    return this.begin(args).ended;
  }

  /** What it prints; fails if it does. */
  async ok(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    assert.equal(code, 0, `kubectl ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** Its complaint; fails unless it does. */
  async fails(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    assert.notEqual(code, 0, `kubectl ${args.join(" ")}: ${stdout}`);
    return stderr;
  }

  /** With an object as its standard input. */
  with(object: unknown, ...args: readonly string[]): string {
    const [file = "", ...words] = this.command(args);
    const input = typeof object === "string" ? object : JSON.stringify(object);
    const { status, stdout, stderr } = spawnSync(file, words, { env: this.env, input, encoding: "utf8" });
    assert.equal(status, 0, `kubectl ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  async json<T>(...args: readonly string[]): Promise<T> {
    return JSON.parse(await this.ok(...args, "-o", "json")) as T;
  }

  /** Waits for a pod that looks as wanted. */
  podIs(name: string, what: string, isWanted: (pod: Pod) => boolean | undefined): Promise<Pod> {
    let last: Pod | undefined;
    const look = async (): Promise<Pod | undefined> => {
      const { code, stdout } = await this.run("get", "pod", name, "-o", "json");
      last = code === 0 ? (JSON.parse(stdout) as Pod) : undefined;
      return last !== undefined && isWanted(last) === true ? last : undefined;
    };
    return until(`pod ${name} ${what}`, look, { seen: () => last?.status ?? "no such pod" });
  }

  async close(): Promise<void> {
    await Promise.all(this.started.filter(({ isOver }) => !isOver).map((program) => program.end("SIGKILL")));
  }

  private command(args: readonly string[]): string[] {
    return [KUBECTL, "--kubeconfig", this.kubeconfig, ...args];
  }

  private get env(): NodeJS.ProcessEnv {
    return { ...process.env, HOME: this.site.dir };
  }
}
