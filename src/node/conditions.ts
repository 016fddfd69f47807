import type { NodeCondition } from "../model/generated/types.ts";

/** What the node's conditions are judged by. */
export interface NodeHealth {
  readonly memoryPressure: boolean;
  readonly diskPressure: boolean;
  readonly pidPressure: boolean;
  /** What keeps the node from being ready, in the order in which it is said. */
  readonly problems: readonly string[];
}

interface Words {
  readonly type: string;
  readonly yes: readonly [reason: string, message: string];
  readonly no: readonly [reason: string, message: string];
  /** Reasons of the events that tell of the change to true and to false. */
  readonly events: readonly [yes: string, no: string];
}

const MEMORY: Words = {
  type: "MemoryPressure",
  yes: ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available"],
  no: ["KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
  events: ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"],
};
const DISK: Words = {
  type: "DiskPressure",
  yes: ["KubeletHasDiskPressure", "kubelet has disk pressure"],
  no: ["KubeletHasNoDiskPressure", "kubelet has no disk pressure"],
  events: ["NodeHasDiskPressure", "NodeHasNoDiskPressure"],
};
const PIDS: Words = {
  type: "PIDPressure",
  yes: ["KubeletHasInsufficientPID", "kubelet has insufficient PID available"],
  no: ["KubeletHasSufficientPID", "kubelet has sufficient PID available"],
  events: ["NodeHasInsufficientPID", "NodeHasSufficientPID"],
};
const READY = { type: "Ready", events: ["NodeReady", "NodeNotReady"] } as const;

/** 2.6: the four conditions, the pressures first. A condition that says what it said keeps its time. Pure. */
export function nodeConditions(
  health: NodeHealth,
  previous: readonly NodeCondition[] | undefined,
  now: string,
): readonly NodeCondition[] {
  const { problems } = health;
  const message = problems.length > 1 ? `[${problems.join(", ")}]` : (problems[0] ?? "");
  const ready: Words = {
    ...READY,
    yes: ["KubeletReady", "kubelet is posting ready status"],
    no: ["KubeletNotReady", message],
  };
  const judged: readonly [Words, boolean][] = [
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

/** The conditions with the times since which they hold, where the server has known them all along. Pure. */
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

/** Whether a list of conditions says that the node is ready. */
export function isNodeReady(conditions: readonly NodeCondition[] | undefined): boolean {
  return conditions?.some(({ type, status }) => type === READY.type && status === "True") ?? false;
}

/** Reasons of the events that tell what changed between two lists of conditions. */
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
