import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import type { ImageReport } from "../model/image-report.ts";
import type { NodeExplanation } from "../model/node-pressure.ts";
import type { NodeUsageReport, PodUsageHistory, UsageHistoryReport } from "../model/node-usage.ts";
import type { ContainerDetails, PageMachine, PageSetting } from "../model/page-lines.ts";
import type { ProbeReport } from "../model/probe.ts";
import type { PodEvent, PodExplanation, PodSummary } from "../model/step.ts";
import type { TopologyReport } from "../model/topology-report.ts";

/** The pods of the running agent. All calls are cheap and synchronous. */
export interface PageView {
  summaries(): readonly PodSummary[];
  summary(uid: string): PodSummary | undefined;
  explain(uid: string): PodExplanation | undefined;
  /** Events whose sequence is greater than `since`, in order of it. */
  events(since: number): readonly PodEvent[];
  /** Calls back with the pod's UID after any change of the above, until the signal aborts. */
  onChange(fn: (uid: string) => void, options: Abortable): void;
  logPath(uid: string, which: { readonly container: string; readonly previous: boolean }): string | undefined;
}

/** Reads the logs of containers. */
export interface PageLogs {
  read(
    request: {
      readonly path: string;
      readonly tail?: number;
      readonly timestamps?: boolean;
      readonly follow?: { ended(): boolean; onChange(fn: () => void, options: Abortable): void };
    },
    options: Abortable,
  ): AsyncIterable<Uint8Array>;
}

/** Runs commands in containers; resolves to the URL of the runtime's streaming server. */
export interface PageStreams {
  exec(
    pod: Pod,
    request: {
      readonly container: string;
      readonly command: readonly string[];
      readonly stdin: boolean;
      readonly stdout: boolean;
      readonly stderr: boolean;
      readonly tty: boolean;
    },
    options: Abortable,
  ): Promise<string>;
  podOf(uid: string): Pod | undefined;
}

/** A file of the page. */
export interface PageAsset {
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly isCompressed: boolean;
}

/** The files of the page, as the build made them. */
export interface PageAssets {
  /** Undefined if there is no such file. */
  read(name: string, options: { readonly gzip: boolean }): Promise<PageAsset | undefined>;
}

/** What the page shows. */
export interface PageDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly view: PageView;
  readonly logs: PageLogs;
  readonly streams: PageStreams;
  readonly assets: PageAssets;
  usage(options: Abortable): Promise<NodeUsageReport>;
  /** The usage of the last minutes. */
  readonly history: { report(): UsageHistoryReport; ofPod(uid: string): PodUsageHistory | undefined };
  /** Counters of a pod's running containers. */
  details(uid: string): readonly ContainerDetails[];
  images(options: Abortable): Promise<ImageReport>;
  node(options: Abortable): Promise<NodeExplanation>;
  settings(): readonly PageSetting[];
  machine(): PageMachine;
  /** The processors, memory and devices of the machine, and who has what of them. */
  topology(): TopologyReport;
  /** The probes of a pod's containers, as they are now. */
  probes(uid: string): readonly ProbeReport[];
  /** False if logs and exec are turned off (`enableDebuggingHandlers`). */
  hasDebugging(): boolean;
}

export interface PageOptions {
  readonly nodeName: string;
  readonly version: string;
}
