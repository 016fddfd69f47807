import type { Abortable } from "../lib/abort.ts";
import type { Live } from "../lib/live.ts";
import type { Pod } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";
import type { HealthCheck } from "./health.ts";

/** The pods as the endpoints see them. */
export interface PodsView {
  /** The desired pods of all sources with their live status. */
  all(): readonly Pod[];
  find(namespace: string, name: string): Pod | undefined;
  /** What the runtime last said about a pod. */
  observed(uid: string): ObservedPod | undefined;
  /** All pods that the runtime has, wanted or not. */
  running(): readonly ObservedPod[];
  /** Calls back when something of a pod may have changed. */
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

/** How a container's log is read; the provider is `readLog` of the logs feature. */
export interface LogReader {
  read(request: LogWish, options: Abortable): AsyncIterable<Uint8Array>;
}

export interface LogWish {
  readonly path: string;
  readonly tail?: number;
  readonly sinceMs?: number;
  readonly limitBytes?: number;
  readonly timestamps?: boolean;
  readonly stream?: "stdout" | "stderr";
  readonly follow?: { ended(): boolean; onChange(fn: () => void, options: Abortable): void };
}

/** One name of a directory of logs. */
export interface LogEntry {
  readonly name: string;
  readonly isDirectory: boolean;
}

/** The host's logs, below one root that no path leaves. Undefined: not there, or outside. */
export interface SystemLogs {
  look(
    path: string,
  ): Promise<
    | { readonly kind: "directory"; readonly entries: readonly LogEntry[] }
    | { readonly kind: "file"; readonly size: number; readonly modifiedMs: number }
    | undefined
  >;
  read(path: string, range: { from: number; to: number }, options: Abortable): AsyncIterable<Uint8Array>;
  /** What the journal has of a unit, newest last; undefined when the journal does not know it. */
  journal(args: readonly string[], options: Abortable): AsyncIterable<Uint8Array>;
  knowsUnit(unit: string, options: Abortable): Promise<boolean>;
}

/** Metrics pages in the Prometheus text format. */
export interface MetricsPages {
  /** The agent's own. */
  agent(): Promise<string>;
  probes(): Promise<string>;
}

/** Statistics of containers and the node; absent until somebody measures them. */
export interface StatsPages {
  summary(options: Abortable & { readonly onlyCpuAndMemory: boolean }): Promise<unknown>;
  cadvisor(options: Abortable): Promise<string>;
  resource(options: Abortable): Promise<string>;
}

/** What the agent says of itself. */
export interface AboutAgent {
  /** The whole KubeletConfiguration in force. */
  configuration(): unknown;
  /** Flags by name, with the values in force; secrets masked. */
  flags(): Readonly<Record<string, string>>;
  readonly startedMs: number;
  readonly version: string;
}

/** Looking into the running process. */
export interface Debugging {
  setVerbosity(level: number): void;
  commandLine(): readonly string[];
  /** A V8 profile as JSON (`.cpuprofile`, `.heapprofile`). */
  profile(kind: "cpu" | "heap", seconds: number, options: Abortable): Promise<string>;
}

/** The switches behind which endpoints stand. */
export interface ApiSwitches {
  readonly debugging: boolean;
  readonly systemLogs: boolean;
  readonly systemLogQuery: boolean;
  readonly profiling: boolean;
  readonly debugFlags: boolean;
  isGateOn(gate: string): boolean;
}

/** All that the main port shows and does. */
export interface ApiDeps {
  readonly checks: readonly HealthCheck[];
  readonly pods: PodsView;
  readonly runtime: ServerRuntime;
  readonly streams: StreamOpener;
  /** Told of each request for streams by WebSocket. */
  streamed?(subresource: "exec" | "attach" | "portforward"): void;
  readonly logs: LogReader;
  readonly systemLogs: SystemLogs;
  readonly metrics: MetricsPages;
  readonly stats?: StatsPages | undefined;
  readonly about: AboutAgent;
  readonly debug: Debugging;
  readonly switches: Live<ApiSwitches>;
  /** Makes the folder of checkpoints, which only the agent may read. May be repeated. */
  makeDir(path: string, mode: number): Promise<void>;
  /** Where checkpoints go. */
  readonly rootDir: string;
  now(): number;
}
