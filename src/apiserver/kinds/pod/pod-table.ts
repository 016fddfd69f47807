import type { ContainerStatus, Pod } from "../../../model/generated/types.ts";
import { isSidecar } from "../../../model/pod-facts.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { since } from "../../tables/human-duration.ts";

/** What `kubectl get pods` shows of a pod beyond its fields. */
interface PodSummary {
  readonly ready: number;
  readonly total: number;
  readonly reason: string;
  readonly restarts: number;
  /** When a container ended last before it was started again. */
  readonly lastRestart: string | undefined;
}

export const podTable = tableOf<Pod>([
  NAME,
  {
    name: "Ready",
    cell: (pod) => {
      const { ready, total } = summarize(pod);
      return `${ready}/${total}`;
    },
  },
  { name: "Status", cell: (pod) => summarize(pod).reason },
  {
    name: "Restarts",
    cell: (pod, now) => {
      const { restarts, lastRestart } = summarize(pod);
      return restarts > 0 && lastRestart ? `${restarts} (${since(lastRestart, now)} ago)` : String(restarts);
    },
  },
  AGE,
  { name: "IP", isWide: true, cell: ({ status }) => status?.podIPs?.[0]?.ip || "<none>" },
  { name: "Node", isWide: true, cell: ({ spec }) => spec.nodeName || "<none>" },
  { name: "Nominated Node", isWide: true, cell: ({ status }) => status?.nominatedNodeName || "<none>" },
  { name: "Readiness Gates", isWide: true, cell: gatesText },
]);

/** The state of a pod in a few words, by the rules of `kubectl get pods`. Pure. */
export function summarize(pod: Pod): PodSummary {
  const init = summarizeInit(pod);
  const isInitialized = conditionOf(pod, "Initialized") === "True";
  const isStarted = init.reason === undefined || isInitialized;
  const main = isStarted ? summarizeMain(pod, init.reason ?? phaseReason(pod)) : undefined;
  const restarts = main === undefined ? init.restarts : main.restarts + init.sidecarRestarts;
  const lastRestart = latest([...(main?.ends ?? []), ...(main === undefined ? init.ends : init.sidecarEnds)]);
  const reason = main?.reason ?? init.reason ?? phaseReason(pod);
  return {
    ready: init.ready + (main?.ready ?? 0),
    total: pod.spec.containers.length + (pod.spec.initContainers ?? []).filter(isSidecar).length,
    reason: deletedReason(pod) ?? reason,
    restarts,
    lastRestart,
  };
}

function phaseReason({ status }: Pod): string {
  const gated = status?.conditions?.find(({ type }) => type === "PodScheduled")?.reason === "SchedulingGated";
  return gated ? "SchedulingGated" : status?.reason || status?.phase || "";
}

function deletedReason({ metadata, status }: Pod): string | undefined {
  if (metadata.deletionTimestamp === undefined) return undefined;
  if (status?.reason === "NodeLost") return "Unknown";
  const isOver = status?.phase === "Succeeded" || status?.phase === "Failed";
  return isOver ? undefined : "Terminating";
}

interface InitSummary {
  readonly ready: number;
  /** Why the pod is still initializing; undefined if it is not. */
  readonly reason: string | undefined;
  readonly restarts: number;
  readonly sidecarRestarts: number;
  readonly ends: readonly string[];
  readonly sidecarEnds: readonly string[];
}

function summarizeInit({ spec, status }: Pod): InitSummary {
  const containers = spec.initContainers ?? [];
  const statuses = status?.initContainerStatuses ?? [];
  let ready = 0;
  let restarts = 0;
  let sidecarRestarts = 0;
  let reason: string | undefined;
  const ends: string[] = [];
  const sidecarEnds: string[] = [];
  for (const [index, one] of statuses.entries()) {
    const container = containers.find(({ name }) => name === one.name);
    const isRestartable = container !== undefined && isSidecar(container);
    restarts += one.restartCount;
    ends.push(...endOf(one));
    if (isRestartable) {
      sidecarRestarts += one.restartCount;
      sidecarEnds.push(...endOf(one));
    }
    if (one.state?.terminated?.exitCode === 0) continue;
    if (isRestartable && one.started) {
      if (one.ready) ready++;
      continue;
    }
    reason = initReason(one, `Init:${index}/${containers.length}`);
    break;
  }
  return { ready, reason, restarts, sidecarRestarts, ends, sidecarEnds };
}

function initReason({ state }: ContainerStatus, progress: string): string {
  const { terminated, waiting } = state ?? {};
  if (terminated !== undefined) return `Init:${endReason(terminated)}`;
  return waiting?.reason && waiting.reason !== "PodInitializing" ? `Init:${waiting.reason}` : progress;
}

interface MainSummary {
  readonly ready: number;
  readonly reason: string;
  readonly restarts: number;
  readonly ends: readonly string[];
}

function summarizeMain(pod: Pod, phase: string): MainSummary {
  let reason = phase;
  let failure = "";
  let ready = 0;
  let restarts = 0;
  let hasRunning = false;
  const ends: string[] = [];
  for (const one of [...(pod.status?.containerStatuses ?? [])].reverse()) {
    restarts += one.restartCount;
    ends.push(...endOf(one));
    const { waiting, terminated, running } = one.state ?? {};
    if (waiting?.reason) reason = waiting.reason;
    else if (terminated !== undefined) {
      reason = endReason(terminated);
      if (terminated.exitCode !== 0) failure = reason;
    } else if (one.ready && running !== undefined) {
      hasRunning = true;
      ready++;
    }
  }
  if (reason === "Completed") {
    if (hasRunning && conditionOf(pod, "Ready") === "True") reason = "Running";
    else if (failure !== "") reason = failure;
    else if (hasRunning) reason = "NotReady";
  }
  return { ready, reason, restarts, ends };
}

function endReason({
  reason,
  signal,
  exitCode,
}: NonNullable<NonNullable<ContainerStatus["state"]>["terminated"]>): string {
  if (reason) return reason;
  return signal ? `Signal:${signal}` : `ExitCode:${exitCode}`;
}

function endOf({ lastState }: ContainerStatus): string[] {
  const at = lastState?.terminated?.finishedAt;
  return at ? [at] : [];
}

function latest(times: readonly string[]): string | undefined {
  return [...times].sort().at(-1);
}

function conditionOf({ status }: Pod, wanted: string): string | undefined {
  return status?.conditions?.find(({ type }) => type === wanted)?.status;
}

function gatesText({ spec, status }: Pod): string {
  const gates = spec.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  const isTrue = (wanted: string): boolean =>
    status?.conditions?.find(({ type }) => type === wanted)?.status === "True";
  return `${gates.filter(({ conditionType }) => isTrue(conditionType)).length}/${gates.length}`;
}
