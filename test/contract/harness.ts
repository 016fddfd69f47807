import assert from "node:assert/strict";
import {
  type ContainerConfig,
  type ImagePort,
  RuntimeError,
  type RuntimeErrorCode,
  type RuntimePort,
  type SandboxConfig,
} from "../../src/adapters/runtime/port.ts";
import type { Clock } from "../../src/lib/clock.ts";

/** What a test container does; each harness turns it into a command of its own. */
export interface TestProgram {
  /** Ends by itself after so long; absent: runs for ever. */
  readonly exitAfterMs?: number;
  readonly exitCode?: number;
  readonly ignoresTerm?: boolean;
  /** Exit code after the stop signal. */
  readonly termCode?: number;
}

/** What a command inside a test container does. */
export interface TestCommand {
  readonly exitCode?: number;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly takesMs?: number;
}

/** A runtime under contract, and what a suite needs around it. */
export interface RuntimeHarness {
  readonly runtime: RuntimePort;
  readonly images: ImagePort;
  /** The runtime's own time: a fake one goes on by itself. */
  readonly clock: Clock;
  /** An image that is there. */
  readonly image: string;
  readonly cgroupParent: string;
  readonly logDirectory: string;
  command(program: TestProgram): readonly string[];
  execCommand(command: TestCommand): readonly string[];
  /** Waits until the program of a running container would hear a signal. */
  listens(id: string): Promise<void>;
  /** The memory limit in bytes that a container has now, as the runtime's host knows it. */
  memoryLimit(id: string): number | undefined;
  /** Puts a container's log file out of the way, as a rotation does; answers whether a new one was begun since. */
  rotateLog(path: string, id: string): () => boolean;
  /** A command that cannot be started. */
  readonly brokenCommand: readonly string[];
  /** The runtime goes away as in a crash; containers go on. */
  kill(): Promise<void>;
  revive(): Promise<void>;
  stop(): Promise<void>;
}

/** Gives the harness of the running suite; it exists from `before` on. */
export type Harness = () => RuntimeHarness;

/** A signal for calls that nobody aborts. */
export const never = { signal: new AbortController().signal };

/** For assert.rejects: a RuntimeError with this code. */
export function withCode(...codes: readonly RuntimeErrorCode[]): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof RuntimeError, `not a RuntimeError: ${String(error)}`);
    assert.ok(codes.includes(error.code), `code ${error.code} (${error.message}), wanted ${codes.join(" or ")}`);
    return true;
  };
}

let sequence = 0;

/** A sandbox configuration with a name of its own. */
export function sandboxConfig(harness: RuntimeHarness, change: Partial<SandboxConfig> = {}): SandboxConfig {
  const name = `pod-${process.pid}-${++sequence}`;
  return {
    metadata: { name, namespace: "contract", uid: `uid-${name}`, attempt: 0 },
    hostname: name,
    logDirectory: `${harness.logDirectory}/${name}`,
    portMappings: [],
    labels: { suite: "contract", pod: name },
    annotations: { "example.com/note": 'ünïcode "quoted"\nline' },
    linux: {
      cgroupParent: harness.cgroupParent,
      sysctls: {},
      security: {
        namespaces: { network: "pod", pid: "container", ipc: "pod" },
        privileged: false,
        supplementalGroups: [],
        seccomp: { type: "runtimeDefault" },
      },
    },
    ...change,
  };
}

/** A container configuration around a command. */
export function containerConfig(harness: RuntimeHarness, change: Partial<ContainerConfig> = {}): ContainerConfig {
  return {
    name: "main",
    attempt: 0,
    image: { ref: harness.image, userSpecified: harness.image },
    command: harness.command({}),
    args: [],
    workingDir: "",
    envs: [{ name: "GREETING", value: "hello wörld" }],
    mounts: [],
    devices: [],
    cdiDevices: [],
    labels: { container: "main" },
    annotations: {},
    logPath: "main/0.log",
    stdin: false,
    stdinOnce: false,
    tty: false,
    linux: {
      resources: {},
      security: {
        namespaces: { network: "pod", pid: "container", ipc: "pod" },
        privileged: false,
        readonlyRootfs: false,
        noNewPrivs: false,
        addCapabilities: [],
        dropCapabilities: [],
        supplementalGroups: [],
        maskedPaths: [],
        readonlyPaths: [],
        seccomp: { type: "runtimeDefault" },
      },
    },
    ...change,
  };
}
