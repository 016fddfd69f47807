import type { AgentOptions, StartConfiguration } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { AgentView } from "../localapi/index.ts";
import type { Pod } from "../model/generated/types.ts";

/** All that `kubelet up` was asked for; everything lies under `stateDir`. */
export interface UpOptions {
  readonly stateDir: string;
  /** A runtime that is already there; undefined means the embedded one. */
  readonly runtimeEndpoint: string | undefined;
  /** Ready for the agent but for what the embedded runtime decides: its endpoint and cgroup root. */
  readonly agent: AgentOptions;
  /** Settings that were given and that this version does not act on yet. */
  readonly notActedOn: readonly string[];
  /** Problems of the configuration files that do not keep the agent from starting. */
  readonly warnings: readonly string[];
  /** Takes the place of /var/log/containers. */
  readonly containerLogsDir: string;
  /** The agent's log lines go here, not over the live view. */
  readonly logFile: string;
}

export interface DownOptions {
  readonly stateDir: string;
  readonly runtimeEndpoint: string | undefined;
}

/** One of the agent's ports, as the live view shows it. */
export interface PortState {
  readonly name: string;
  /** Where it listens, or undefined while it does not. */
  readonly address: string | undefined;
  /** Why it does not listen. */
  readonly trouble: string | undefined;
}

/** An agent that runs in this process. */
export interface RunningAgent {
  readonly view: AgentView;
  /** Such as `containerd 1.6.20 (pid 123)`. */
  readonly runtime: string;
  ports(): readonly PortState[];
  /** Calls back when a port opened or cannot, until the signal aborts. */
  onPorts(fn: () => void, options: Abortable): void;
  /** The desired pods with their status. */
  pods(): readonly Pod[];
  /** Resolves to the exit code when the agent has stopped: after the signal aborted, or on its own. */
  readonly done: Promise<number>;
}

/** Called with what goes on while it takes longer than a moment. */
export interface Progress {
  progress(text: string): void;
}

/** What the plain agent starts with beside its options. */
export interface AgentStart {
  /** Where the options came from, and how to read them again. */
  readonly configuration: StartConfiguration;
}

/** What the commands need of the composition root. A `CodedError` is shown in one line; any other is a bug. */
export interface AgentLauncher {
  /** The plain agent, until the signal aborts (or, with --runonce, until all pods are done). Its exit code. */
  run(options: AgentOptions, start: Abortable & AgentStart): Promise<number>;
  /** Keeps every other agent and command from a directory of dynamic configurations; returns how to let go. */
  lockConfigStore(directory: string): Promise<() => void>;
  /** Resolves when the agent works; aborting the signal stops the agent, never the pods. */
  up(options: UpOptions, watcher: Progress, abortable: Abortable): Promise<RunningAgent>;
  /** Stops the pods and the embedded runtime and removes all that `up` made. */
  down(options: DownOptions, watcher: Progress, abortable: Abortable): Promise<void>;
}
