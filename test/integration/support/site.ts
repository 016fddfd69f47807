import assert from "node:assert/strict";
import type { SpawnOptions } from "node:child_process";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CriRuntime } from "../../../src/adapters/cri/cri-runtime.ts";
import { findInPath } from "../../../src/adapters/embedded/daemon.ts";
import { type Layout, layoutOf } from "../../../src/adapters/embedded/layout.ts";
import { UnixClient } from "../../../src/adapters/net/unix-client.ts";
import type { ContainerSummary, SandboxSummary } from "../../../src/adapters/runtime/port.ts";
import { SystemClock } from "../../../src/lib/clock.ts";
import { fixed } from "../../../src/lib/live.ts";
import { silent } from "../../../src/lib/log.ts";
import type { AgentInfo } from "../../../src/localapi/index.ts";
import type { Pod } from "../../../src/model/generated/types.ts";
import { POD_UID_LABEL } from "../../../src/model/labels.ts";
import type { PodEvent, PodExplanation, PodSummary } from "../../../src/model/step.ts";
import { freePort } from "../../support/free-port.ts";
import { type Ended, KUBELET, kubelet, Program } from "./program.ts";
import { NO_TRACES, traces } from "./traces.ts";
import { until } from "./until.ts";

const { signal } = new AbortController();

/** The node's name, whatever the machine is called: static pods carry it, and it is part of their UIDs. */
export const NODE = "here";

/** A pod's name without the node's. */
export function shortName(name: string): string {
  return name.endsWith(`-${NODE}`) ? name.slice(0, -NODE.length - 1) : name;
}

/** One `kubelet up` that runs. */
export interface Agent extends Program {
  readonly healthPort: number;
  readonly readOnlyPort: number;
  readonly mainPort: number;
  /** Of the local API. */
  readonly apiPort: number;
}

/** A directory of manifests and a state directory; agents come and go on it. Short paths: a socket's has 107 bytes. */
export class Site {
  readonly dir = mkdtempSync(join(tmpdir(), "a-"));
  readonly pods = join(this.dir, "pods");
  readonly state = join(this.dir, "s");
  readonly layout: Layout = layoutOf({ stateDir: this.state });
  private readonly api = new UnixClient(join(this.state, "kubelet.sock"));
  private readonly programs: Program[] = [];
  private runtime: CriRuntime | undefined;

  constructor() {
    mkdirSync(this.pods);
  }

  /** Starts an agent and waits until it answers. */
  async up(flags: readonly string[] = [], options: SpawnOptions = {}): Promise<Agent> {
    const agent = await this.launch(flags, options);
    await this.answers(agent);
    return agent;
  }

  /** Starts an agent and waits for nothing. */
  async launch(flags: readonly string[] = [], options: SpawnOptions = {}): Promise<Agent> {
    const [healthPort, readOnlyPort, mainPort] = [await freePort(), await freePort(), await freePort()];
    const apiPort = await freePort();
    const ports = [
      ...[`--healthz-port=${healthPort}`, `--read-only-port=${readOnlyPort}`, `--port=${mainPort}`],
      // Other agents run at the same time.
      ...(flags.some((flag) => flag.startsWith("--apiserver-port=")) ? [] : [`--apiserver-port=${apiPort}`]),
      ...(flags.some((flag) => flag.startsWith("--cadvisor-port=")) ? [] : ["--cadvisor-port=0"]),
    ];
    // One range of services is routed to one agent only.
    const number = Number.parseInt(this.layout.hash.slice(0, 4), 16);
    const range = `10.${128 + ((number >> 8) % 64)}.${number & 255}.0/24`;
    if (!flags.some((flag) => flag.startsWith("--service-cluster-ip-range="))) {
      ports.push(`--service-cluster-ip-range=${range}`);
    }
    const place = [`--pods=${this.pods}`, `--state-dir=${this.state}`, `--hostname-override=${NODE}`];
    const command = [KUBELET, "up", ...place, ...ports, ...flags];
    const program = new Program(command, options);
    this.programs.push(program);
    return Object.assign(program, { healthPort, readOnlyPort, mainPort, apiPort });
  }

  /** Waits until this agent, and no earlier one, serves the local socket. */
  async answers(agent: Program): Promise<void> {
    await until("the agent answers", async () => {
      assert.ok(!agent.isOver, `the agent ended:\n${agent.stdout}\n${agent.stderr}`);
      const info = await this.ask<AgentInfo>("/v1/agent").catch(() => undefined);
      return info?.pid === agent.pid;
    });
  }

  /** A command of the user's, on this state directory. */
  run(...args: string[]): Promise<Ended> {
    return kubelet([...args, "--state-dir", this.state]);
  }

  /** A command that goes on by itself. */
  start(...args: string[]): Program {
    const program = new Program([KUBELET, ...args, "--state-dir", this.state]);
    this.programs.push(program);
    return program;
  }

  ask<T>(path: string): Promise<T> {
    return this.api.json<T>(path, { signal });
  }

  /** An answer that is plain text, such as a log. */
  async text(path: string): Promise<string> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.api.bytes(path, { signal })) chunks.push(chunk);
    return Buffer.concat(chunks).toString("utf8");
  }

  list(): Promise<PodSummary[]> {
    return this.ask("/v1/pods");
  }

  events(): Promise<PodEvent[]> {
    return this.collect("/v1/events");
  }

  /** What the agent tells of a pod by the name in its manifest; undefined when it knows none. */
  async find(name: string): Promise<PodExplanation | undefined> {
    return this.ask<PodExplanation>(`/v1/pods/${name}`).catch(() => undefined);
  }

  /** Waits for a pod that looks as wanted. */
  async pod(
    name: string,
    what: string,
    isWanted: (pod: PodExplanation) => boolean | undefined,
  ): Promise<PodExplanation> {
    let last: PodExplanation | undefined;
    const look = async (): Promise<PodExplanation | undefined> => {
      last = await this.find(name);
      return last !== undefined && isWanted(last) === true ? last : undefined;
    };
    return until(`pod ${name} ${what}`, look, { seen: () => last ?? "no such pod" });
  }

  /** Waits until all containers of the pod run. */
  running(name: string): Promise<PodExplanation> {
    return this.pod(name, "runs", isRunning);
  }

  /** Waits until the agent knows no such pod any more. */
  async gone(name: string): Promise<void> {
    await until(`pod ${name} is gone`, async () => (await this.find(name)) === undefined);
  }

  /** Waits for an event with this reason that is about `subject` (a pod's name, or a manifest's path). */
  event(reason: string, subject: string, words: RegExp = /./): Promise<PodEvent> {
    const isAbout = ({ pod }: PodEvent): boolean => pod.name === subject || pod.name.startsWith(`${subject}-`);
    return until(`event ${reason} about ${subject}`, async () =>
      (await this.events()).find(
        (event) =>
          event.reason === reason && (isAbout(event) || isAt(event.pod.name, subject)) && words.test(event.message),
      ),
    );
  }

  file(name: string): string {
    return join(this.pods, name);
  }

  /** Writes a manifest in place. */
  write(pod: Pod, name = `${pod.metadata.name}.json`): string {
    writeFileSync(this.file(name), JSON.stringify(pod));
    return this.file(name);
  }

  remove(pod: string, name = `${pod}.json`): void {
    rmSync(this.file(name));
  }

  async logs(name: string, ...more: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run("logs", name, ...more);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  /** The runtime itself, for what the agent should not be believed about. */
  get cri(): CriRuntime {
    this.runtime ??= new CriRuntime(
      { clock: new SystemClock(), log: silent },
      { endpoint: `unix://${this.layout.socket}`, requestTimeoutMs: fixed(30_000) },
    );
    return this.runtime;
  }

  sandboxes(uid?: string): Promise<readonly SandboxSummary[]> {
    return this.cri.listSandboxes(uid === undefined ? {} : { labels: { [POD_UID_LABEL]: uid } }, { signal });
  }

  containers(uid?: string): Promise<readonly ContainerSummary[]> {
    return this.cri.listContainers(uid === undefined ? {} : { labels: { [POD_UID_LABEL]: uid } }, { signal });
  }

  /** Removes everything with `kubelet down`, whatever state it is in, and looks whether that was everything. */
  async close(): Promise<void> {
    this.runtime?.close();
    await Promise.all(this.programs.filter(({ isOver }) => !isOver).map((program) => program.end("SIGKILL")));
    const { code, stderr } = await this.run("down");
    assert.equal(code, 0, stderr);
    assert.deepEqual(traces(this.layout), NO_TRACES);
    rmSync(this.dir, { recursive: true, force: true });
  }

  private async collect<T>(path: string): Promise<T[]> {
    const all: T[] = [];
    for await (const value of this.api.lines<T>(path, { signal })) all.push(value);
    return all;
  }
}

/** A manifest's place may have its line. */
function isAt(name: string, path: string): boolean {
  return name === path || name.startsWith(`${path}:`);
}

export function isRunning(pod: PodExplanation): boolean {
  return pod.phase === "Running" && pod.state === "Running" && pod.readyContainers === pod.totalContainers;
}

/** Ids of a pod's containers by name. */
export function ids(pod: PodExplanation): Record<string, string> {
  return Object.fromEntries(pod.containers.map(({ name, id }) => [name, id]));
}

/** Ends the process with the code for "cannot run here" unless the machine has all that is needed. */
export function requireMachine(): void {
  const programs = ["containerd", "runc", "ctr", "iptables", "ip", "busybox", "catatonit"];
  const absent = programs.filter((program) => findInPath(program, process.env["PATH"]) === undefined);
  if (process.getuid?.() !== 0) absent.unshift("root");
  if (absent.length === 0) return;
  process.stdout.write(`needs ${absent.join(", ")}\n`);
  process.exit(77);
}

/**
 * Ends the suite as skipped where commands cannot be run inside containers: in a chroot runc's exec joins the mount
 * namespace at its real root, which is the machine's and not the container's.
 */
export function requireExec(): void {
  const reason = whyNoExec();
  if (reason === undefined) return;
  process.stdout.write(`${reason}\n`);
  process.exit(77);
}

/** Why commands cannot be run in containers here, for single tests. */
export function whyNoExec(): string | undefined {
  const { dev, ino } = statSync("/");
  // Joining a mount namespace, even one's own, leads to its real root.
  const joined = execFileSync("nsenter", ["--mount=/proc/self/ns/mnt", "stat", "-c", "%d:%i", "/"], {
    encoding: "utf8",
  });
  if (joined.trim() === `${dev}:${ino}`) return undefined;
  return "needs a machine that is no chroot: runc's exec leaves the container there";
}
