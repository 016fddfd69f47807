import type { NodeCondition } from "../model/generated/types.ts";

/** The facts that the node's conditions are derived from. */
export interface NodeHealth {
  readonly memoryPressure: boolean;
  readonly diskPressure: boolean;
  readonly pidPressure: boolean;
  /** What keeps the node from being ready, in the order of the message. */
  readonly problems: readonly string[];
}

interface ConditionText {
  readonly type: string;
  readonly yes: readonly [reason: string, message: string];
  readonly no: readonly [reason: string, message: string];
  /** Reasons of the events for the change to true and to false. */
  readonly events: readonly [yes: string, no: string];
}

const MEMORY: ConditionText = {
  type: "MemoryPressure",
  yes: ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available"],
  no: ["KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
  events: ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"],
};
const DISK: ConditionText = {
  type: "DiskPressure",
  yes: ["KubeletHasDiskPressure", "kubelet has disk pressure"],
  no: ["KubeletHasNoDiskPressure", "kubelet has no disk pressure"],
  events: ["NodeHasDiskPressure", "NodeHasNoDiskPressure"],
};
const PIDS: ConditionText = {
  type: "PIDPressure",
  yes: ["KubeletHasInsufficientPID", "kubelet has insufficient PID available"],
  no: ["KubeletHasSufficientPID", "kubelet has sufficient PID available"],
  events: ["NodeHasInsufficientPID", "NodeHasSufficientPID"],
};
const READY = { type: "Ready", events: ["NodeReady", "NodeNotReady"] } as const;

/** Returns the four conditions, the pressures first. An unchanged status keeps its transition time. Pure. */
export function nodeConditions(
  health: NodeHealth,
  previous: readonly NodeCondition[] | undefined,
  now: string,
): readonly NodeCondition[] {
  const { problems } = health;
  const message = problems.length > 1 ? `[${problems.join(", ")}]` : (problems[0] ?? "");
  const ready: ConditionText = {
    ...READY,
    yes: ["KubeletReady", "kubelet is posting ready status"],
    no: ["KubeletNotReady", message],
  };
  const judged: readonly [ConditionText, boolean][] = [
    [MEMORY, health.memoryPressure],
    [DISK, health.diskPressure],
    [PIDS, health.pidPressure],
    [ready, problems.length === 0],
  ];
  return judged.map(([words, holds]) => {
    const [reason, text] = holds ? words.yes : words.no;
    const status = holds ? "True" : "False";
    const before = previous?.find(({ type }) => type === words.type);
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now;
    return { type: words.type, status, reason, message: text, lastHeartbeatTime: now, lastTransitionTime };
  });
}

/** Returns the conditions with the server's transition times where the status is unchanged. Pure. */
export function keepTimes(
  conditions: readonly NodeCondition[],
  known: readonly NodeCondition[] | undefined,
): readonly NodeCondition[] {
  return conditions.map((condition) => {
    const before = known?.find(({ type }) => type === condition.type);
    const since = before?.status === condition.status ? before.lastTransitionTime : undefined;
    return since === undefined ? condition : { ...condition, lastTransitionTime: since };
  });
}

/** True if the Ready condition is true. */
export function isNodeReady(conditions: readonly NodeCondition[] | undefined): boolean {
  return conditions?.some(({ type, status }) => type === READY.type && status === "True") ?? false;
}

/** Returns the reasons of the events for the changes between two lists of conditions. */
export function conditionEvents(
  before: readonly NodeCondition[] | undefined,
  after: readonly NodeCondition[],
): readonly string[] {
  const words = [MEMORY, DISK, PIDS, READY];
  return after.flatMap(({ type, status }) => {
    if (before?.find((known) => known.type === type)?.status === status) return [];
    const events = words.find((one) => one.type === type)?.events;
    return events === undefined ? [] : [status === "True" ? events[0] : events[1]];
  });
}
