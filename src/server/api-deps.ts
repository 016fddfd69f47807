import type { Abortable } from "../lib/abort.ts";
import type { Live } from "../lib/live.ts";
import type { Pod } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";
import type { HealthCheck } from "./health.ts";

/** The pods, as far as the endpoints need them. */
export interface PodsView {
  /** The desired pods of all sources with their live status. */
  all(): readonly Pod[];
  find(namespace: string, name: string): Pod | undefined;
  /** The pod as it was last observed in the runtime. */
  observed(uid: string): ObservedPod | undefined;
  /** All pods of the runtime, desired or orphaned. */
  running(): readonly ObservedPod[];
  /** Calls back when a pod may have changed. */
  onChange(fn: () => void, options: Abortable): void;
}

export interface StreamChoice {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** Connects clients with pods; resolves to the URL of the runtime's streaming server. Rejects with a coded error. */
export interface StreamOpener {
  exec(
    pod: Pod,
    request: StreamChoice & { readonly container: string; readonly command: readonly string[] },
    options: Abortable,
  ): Promise<string>;
  attach(
    pod: Pod,
    request: Omit<StreamChoice, "tty"> & { readonly container: string },
    options: Abortable,
  ): Promise<string>;
  portForward(pod: Pod, ports: readonly number[], options: Abortable): Promise<string>;
  /** The newest running instance of a container, else the newest of all; the runtime is asked if none is known. */
  instance(pod: Pod, container: string, options: Abortable): Promise<{ readonly id: string }>;
}

/** The calls of the runtime that the endpoints use. Rejections are `RuntimeError`s. */
export interface ServerRuntime {
  execSync(
    id: string,
    command: { command: readonly string[]; timeoutSeconds: number },
    options: Abortable,
  ): Promise<{ exitCode: number; stdout: Uint8Array; stderr: Uint8Array }>;
  containerStatus(id: string, options: Abortable): Promise<{ readonly logPath: string }>;
  checkpointContainer(
    id: string,
    request: { location: string; timeoutSeconds: number },
    options: Abortable,
  ): Promise<void>;
}

/** Reads the log of a container; implemented by `readLog` of the logs feature. */
export interface LogReader {
  read(request: LogReadRequest, options: Abortable): AsyncIterable<Uint8Array>;
}

export interface LogReadRequest {
  readonly path: string;
  readonly tail?: number;
  readonly sinceMs?: number;
  readonly limitBytes?: number;
  readonly timestamps?: boolean;
  readonly stream?: "stdout" | "stderr";
  readonly follow?: { ended(): boolean; onChange(fn: () => void, options: Abortable): void };
}

/** An entry of a log directory. */
export interface LogEntry {
  readonly name: string;
  readonly isDirectory: boolean;
}

/** The logs of the host below one root directory. Undefined: not found, or outside of it. */
export interface SystemLogs {
  look(
    path: string,
  ): Promise<
    | { readonly kind: "directory"; readonly entries: readonly LogEntry[] }
    | { readonly kind: "file"; readonly size: number; readonly modifiedMs: number }
    | undefined
  >;
  read(path: string, range: { from: number; to: number }, options: Abortable): AsyncIterable<Uint8Array>;
  /** The output of journalctl for these arguments. */
  journal(args: readonly string[], options: Abortable): AsyncIterable<Uint8Array>;
  hasUnit(unit: string, options: Abortable): Promise<boolean>;
}

/** Metrics pages in the Prometheus text format. */
export interface MetricsPages {
  /** Those of the agent itself. */
  agent(): Promise<string>;
  probes(): Promise<string>;
}

/** Statistics of containers and the node; those that are not measured are missing. */
export interface StatsPages {
  /** JSON. */
  summary(options: Abortable & { readonly onlyCpuAndMemory: boolean }): Promise<Uint8Array>;
  /** In pieces. */
  cadvisor?(options: Abortable): Promise<Iterable<string>>;
  resource?(options: Abortable): Promise<string>;
  /** cAdvisor's API, by the path below `/api/`. */
  api?(
    request: { readonly path: string; readonly query: URLSearchParams },
    options: Abortable,
  ): Promise<{ readonly json: unknown } | { readonly status: number; readonly text: string }>;
  /** A running container in the shape of cAdvisor's API 1.x; undefined if there is none. */
  container?(
    of: {
      readonly namespace: string;
      readonly pod: string;
      readonly uid?: string | undefined;
      readonly container: string;
    },
    options: Abortable,
  ): Promise<unknown>;
}

/** Information about the agent itself. */
export interface AboutAgent {
  /** The current KubeletConfiguration; secrets are masked. */
  configuration(): unknown;
  /** Flags by name with their current values; secrets are masked. */
  flags(): Readonly<Record<string, string>>;
  readonly startedMs: number;
  readonly version: string;
}

/** Debugging of the running process. */
export interface Debugging {
  setVerbosity(level: number): void;
  commandLine(): readonly string[];
  /** A V8 profile as JSON (`.cpuprofile`, `.heapprofile`). */
  profile(kind: "cpu" | "heap", seconds: number, options: Abortable): Promise<string>;
}

/** The settings that enable endpoints. */
export interface ApiSwitches {
  readonly debugging: boolean;
  readonly systemLogs: boolean;
  readonly systemLogQuery: boolean;
  readonly profiling: boolean;
  readonly debugFlags: boolean;
  isGateOn(gate: string): boolean;
}

/** What the endpoints of the main port are built from. */
export interface ApiDeps {
  readonly checks: readonly HealthCheck[];
  readonly pods: PodsView;
  readonly runtime: ServerRuntime;
  readonly streams: StreamOpener;
  /** Called at each stream request over WebSocket. */
  streamed?(subresource: "exec" | "attach" | "portforward"): void;
  readonly logs: LogReader;
  readonly systemLogs: SystemLogs;
  readonly metrics: MetricsPages;
  /** The page about health checks; absent where none are counted. */
  readonly slis?: { page(): string; reset(): void };
  readonly stats?: StatsPages | undefined;
  readonly about: AboutAgent;
  readonly debug: Debugging;
  readonly switches: Live<ApiSwitches>;
  /** Creates the directory of checkpoints, readable only by the agent. May be repeated. */
  makeDir(path: string, mode: number): Promise<void>;
  /** The directory that checkpoints are written below. */
  readonly rootDir: string;
  now(): number;
}
