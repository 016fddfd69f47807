import type { Abortable } from "../lib/abort.ts";
import type { PodEvent, PodExplanation, PodSummary } from "../model/step.ts";

/** The running agent, for its commands and the live view. All calls are cheap and synchronous. */
export interface AgentView {
  summaries(): readonly PodSummary[];
  summary(uid: string): PodSummary | undefined;
  explain(uid: string): PodExplanation | undefined;
  /** Events whose sequence is greater than `since`, in order of it. */
  events(since: number): readonly PodEvent[];
  /** Calls back with the pod's UID after any change of the above, until the signal aborts. */
  onChange(fn: (uid: string) => void, options: Abortable): void;
  /** The log of a container's current (or newest) instance, or of the one before it. */
  logPath(uid: string, which: { readonly container: string; readonly previous: boolean }): string | undefined;
}

/** How a container's log is read. */
export interface LogOpener {
  read(request: LogRequest, options: Abortable): AsyncIterable<Uint8Array>;
}

export interface LogRequest {
  readonly path: string;
  readonly tail?: number;
  readonly follow?: {
    ended(): boolean;
    onChange(fn: () => void, options: Abortable): void;
  };
}

/** The JSON body of every error. */
export interface Refusal {
  readonly message: string;
  /** Suggestions: similar names, or all to choose from. */
  readonly near: readonly string[];
}

/** The agent behind the socket. */
export interface AgentInfo {
  readonly pid: number;
  readonly version: string;
  readonly nodeName: string;
}
