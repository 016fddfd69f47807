import { followKernelLog } from "../../adapters/host/kernel-log.ts";
import { machineInfo, uptimeMicros } from "../../adapters/host/machine.ts";
import { StateFile } from "../../adapters/host/state-file.ts";
import type { agentOptions, OptionStore } from "../../config/index.ts";
import type { Logger } from "../../lib/log.ts";
import type { Loop } from "../../lib/loop.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { ObservedPod } from "../../model/observed.ts";
import type { PodIdentity } from "../../model/step.ts";
import { type FirstListDeps, untilListed } from "../first-list.ts";
import type { OomCounts } from "./oom-counts.ts";
import { type ContainerOomKill, type OomState, OomWatcher } from "./oom-watcher.ts";

export interface OomDeps extends FirstListDeps {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
  /** Where kills are counted by container. */
  readonly oomKills: OomCounts;
  /** What is known of a pod's containers. */
  readonly observer: { get(uid: string): ObservedPod | undefined };
  /** Where events about pods are recorded. */
  readonly journal: {
    of(pod: PodIdentity): {
      event(type: "Warning", reason: string, what: { message: string; container: string }): void;
    };
  };
}

/** The loop that reports OOM kills. */
export function composeOom(deps: OomDeps): Loop {
  const { clock, log, metrics, event } = deps;
  const kills = metrics.counter("kubelet_ts_oom_kills_total", "Processes that the kernel killed for lack of memory.", [
    "scope",
  ]);
  const startedMicros = uptimeMicros();
  const oom = new OomWatcher({
    log,
    event,
    bootId: machineInfo().bootId,
    uptimeMicros: () => startedMicros,
    follow: (handler, { signal }) => followKernelLog(handler, { signal, clock }),
    state: new StateFile({ path: `${deps.store.current.rootDir}/oom_watcher_state`, log }, decodeState),
    counted: (scope) => kills.inc([scope]),
    killed: (kill) => recordKill(deps, kill),
  });
  // A kill of before the start is reported with its container, which only the runtime knows.
  return { name: "OOM kills", run: (signal) => untilListed(deps, { signal }).then(() => oom.run(signal)) };
}

/** Counts it, and records an event about the pod: `explain` shows it with its count. The process chose its own name. */
export function recordKill(
  { observer, journal, oomKills }: Pick<OomDeps, "observer" | "journal" | "oomKills">,
  { podUid, containerId, process, isSystem }: ContainerOomKill,
): void {
  const pod = observer.get(podUid);
  const container = pod?.containers.find(({ id }) => id === containerId)?.name;
  if (pod === undefined || container === undefined) return;
  oomKills.add(podUid, container);
  const why = isSystem ? "the node ran out of memory" : "its memory limit was reached";
  const message = `Container ${container}: the kernel killed process ${process} because ${why}`;
  journal.of(pod).event("Warning", "OOMKilling", { message, container });
}

function decodeState(document: unknown): OomState | undefined {
  if (typeof document !== "object" || document === null) return undefined;
  const { bootId, sequence, sinceMicros } = document as Partial<Record<keyof OomState, unknown>>; // reason: checked below
  if (typeof bootId !== "string" || typeof sequence !== "number" || typeof sinceMicros !== "number") return undefined;
  return { bootId, sequence, sinceMicros };
}
