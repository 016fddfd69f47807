import { followKernelLog } from "../../adapters/host/kernel-log.ts";
import { machineInfo, uptimeMicros } from "../../adapters/host/machine.ts";
import { StateFile } from "../../adapters/host/state-file.ts";
import type { agentOptions, OptionStore } from "../../config/index.ts";
import type { Logger } from "../../lib/log.ts";
import type { Loop } from "../../lib/loop.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { type FirstListDeps, untilListed } from "../first-list.ts";
import { KillRecorder, type KillRecorderDeps } from "./kill-recorder.ts";
import { type OomState, OomWatcher } from "./oom-watcher.ts";

export interface OomDeps extends FirstListDeps, KillRecorderDeps {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

/** The loop that reports OOM kills. */
export function composeOom(deps: OomDeps): Loop {
  const { clock, log, metrics, event } = deps;
  const kills = metrics.counter("kubelet_ts_oom_kills_total", "Processes that the kernel killed for lack of memory.", [
    "scope",
  ]);
  const recorder = new KillRecorder(deps);
  const startedMicros = uptimeMicros();
  const oom = new OomWatcher({
    log,
    event,
    bootId: machineInfo().bootId,
    uptimeMicros: () => startedMicros,
    follow: (handler, { signal }) => followKernelLog(handler, { signal, clock }),
    state: new StateFile({ path: `${deps.store.current.rootDir}/oom_watcher_state`, log }, decodeOomState),
    counted: (scope) => kills.inc([scope]),
    killed: (kill) => recorder.record(kill),
  });
  // A kill of before the start is reported with its container, which only the runtime knows.
  const run = async (signal: AbortSignal): Promise<void> => {
    await untilListed(deps, { signal });
    await oom.run(signal);
    recorder.close();
  };
  return { name: "OOM kills", run };
}

/** Undefined for a document of another shape. Pure. */
export function decodeOomState(document: unknown): OomState | undefined {
  if (typeof document !== "object" || document === null) return undefined;
  const { bootId, sequence, sinceMicros } = document as Partial<Record<keyof OomState, unknown>>; // reason: checked below
  if (typeof bootId !== "string" || typeof sequence !== "number" || typeof sinceMicros !== "number") return undefined;
  return { bootId, sequence, sinceMicros };
}
