import type { AgentOptions, StartConfiguration } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { AgentView } from "../localapi/index.ts";
import type { Pod } from "../model/generated/types.ts";

/** The plan of `kubelet up`; everything lies under `stateDir`. */
export interface UpOptions {
  readonly stateDir: string;
  /** An existing runtime; undefined for the embedded one. */
  readonly runtimeEndpoint: string | undefined;
  /** The options of the agent, except for the endpoint and cgroup root of the embedded runtime. */
  readonly agent: AgentOptions;
  /** Given settings that this version does not act on. */
  readonly notActedOn: readonly string[];
  /** Problems of the configuration files that do not keep the agent from starting. */
  readonly warnings: readonly string[];
  /** Replaces /var/log/containers. */
  readonly containerLogsDir: string;
  /** The file for the agent's log, so that it does not disturb the live view. */
  readonly logFile: string;
}

export interface DownOptions {
  readonly stateDir: string;
  readonly runtimeEndpoint: string | undefined;
}

/** One of the agent's ports, as the live view shows it. */
export interface PortState {
  readonly name: string;
  /** The address that it listens on; undefined while it does not. */
  readonly address: string | undefined;
  /** Why it failed to listen. */
  readonly trouble: string | undefined;
}

/** An agent that runs in this process. */
export interface RunningAgent {
  readonly view: AgentView;
  /** Such as `containerd 1.6.20 (pid 123)`. */
  readonly runtime: string;
  ports(): readonly PortState[];
  /** Calls back when a port opened or failed to, until the signal aborts. */
  onPorts(fn: () => void, options: Abortable): void;
  /** The desired pods with their status. */
  pods(): readonly Pod[];
  /** Resolves to the exit code when the agent has stopped: after the signal aborted, or on its own. */
  readonly done: Promise<number>;
}

/** Reports the progress of a long start. */
export interface Progress {
  progress(text: string): void;
}

/** What the plain agent is started with besides its options. */
export interface AgentStart {
  /** The origin of the options, and how to reload them. */
  readonly configuration: StartConfiguration;
}

/** Starts and stops agents, for the commands. A `CodedError` is shown in one line; any other error is a bug. */
export interface AgentLauncher {
  /** The plain agent, until the signal aborts (or, with --runonce, until all pods are done). Its exit code. */
  run(options: AgentOptions, start: Abortable & AgentStart): Promise<number>;
  /** Locks a directory of dynamic configurations; returns the release. */
  lockConfigStore(directory: string): Promise<() => void>;
  /** Resolves when the agent is running; aborting the signal stops the agent, never the pods. */
  up(options: UpOptions, watcher: Progress, abortable: Abortable): Promise<RunningAgent>;
  /** Stops the pods and the embedded runtime and removes all that `up` made. */
  down(options: DownOptions, watcher: Progress, abortable: Abortable): Promise<void>;
}
