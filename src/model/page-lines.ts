import type {
  ContainerUsageLine,
  NodeUsageLine,
  PodUsageHistory,
  PodUsageLine,
  UsageHistoryReport,
} from "./node-usage.ts";
import type { ProbeReport } from "./probe.ts";
import type { PodEvent, PodExplanation, PodSummary } from "./step.ts";

/** A part of the page that needs access of its own. */
export type PageSection = "pods" | "usage" | "logs" | "exec" | "images" | "configuration" | "machine";

/** The first line of a stream: what the agent is, and what the caller may see. */
export interface PageHello {
  readonly node: string;
  readonly version: string;
  readonly sections: readonly PageSection[];
  /** The agent's wall clock in milliseconds: that of the browser may differ. */
  readonly now: number;
}

/** Usage of pods by UID, those that changed; `gone` are no longer measured. */
export interface UsageChanges {
  readonly at: number;
  readonly node: NodeUsageLine;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly pods: readonly PodUsageLine[];
  readonly gone: readonly string[];
}

/** A line of the stream of the whole node: what changed since the line before. */
export interface OverviewLine {
  readonly hello?: PageHello;
  readonly pods?: { readonly set: readonly PodSummary[]; readonly gone: readonly string[] };
  readonly events?: readonly PodEvent[];
  readonly usage?: UsageChanges;
  /** Comes before the first usage. */
  readonly history?: UsageHistoryReport;
}

/** A probe of a container: what it does in words, and as it is now. */
export interface ProbeLine extends Omit<ProbeReport, "result"> {
  /** Such as `HTTP GET :8080/healthz`. */
  readonly check: string;
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
  /** Absent while the container is not probed. */
  readonly result?: ProbeReport["result"];
}

/** Counters of a container that are read only for the pod that somebody looks at. */
export interface ContainerDetails {
  readonly name: string;
  readonly readBytes: number;
  readonly writtenBytes: number;
  readonly throttledNanos: number;
  readonly cpuLimitCores?: number;
  readonly processes?: number;
  readonly descriptors?: number;
  readonly sockets?: number;
  readonly oomKills: number;
}

/** A line of the stream of one pod: what changed since the line before. */
export interface PodLine {
  readonly hello?: PageHello;
  readonly pod?: PodExplanation;
  readonly probes?: readonly ProbeLine[];
  readonly usage?: PodUsageLine & { readonly containers: readonly ContainerUsageLine[] };
  readonly details?: readonly ContainerDetails[];
  /** Comes with the first usage. */
  readonly history?: PodUsageHistory;
  /** The pod was removed; nothing follows. */
  readonly gone?: true;
}

/** A setting of the agent. */
export interface PageSetting {
  readonly name: string;
  readonly topic: string;
  readonly help: string;
  readonly shown: string;
  readonly fallback: string;
  readonly differs: boolean;
  /** Where it comes from; empty if that is not known. */
  readonly places: readonly string[];
}

/** The machine, for the section about its topology. */
export interface PageMachine {
  readonly cores: number;
  readonly physicalCores: number;
  readonly sockets: number;
  readonly cpuKhz: number;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly osImage: string;
  readonly architecture: string;
  readonly disks: readonly { readonly name: string; readonly size: number }[];
  readonly networkDevices: readonly { readonly name: string; readonly speed: number; readonly mtu: number }[];
}

/** The body of an error. `signIn` says how a caller without a session gets one. */
export interface PageRefusal {
  readonly message: string;
  readonly signIn?: "link" | "token";
}
