import type { Container, ContainerStatus, Pod } from "../../model/generated/types.ts";
import { mayRestart } from "../plan/restart-rules.ts";
import { isSidecarOf } from "./derive-conditions.ts";
import type { StatusFacts } from "./status-facts.ts";

type Terminated = NonNullable<ContainerStatus["state"]>["terminated"];

const TERMINAL = new Set(["Succeeded", "Failed"]);

/** True for a phase that never changes again. */
export function isTerminalPhase(phase: string | undefined): boolean {
  return phase !== undefined && TERMINAL.has(phase);
}

/**
 * The phase that follows from the container statuses, by the same tests in the same order as in Kubernetes. A terminal
 * phase stays, and a pod whose containers have all stopped for good gets one.
 */
export function phaseOf(
  facts: StatusFacts,
  init: readonly ContainerStatus[],
  regular: readonly ContainerStatus[],
): string {
  const before = facts.previous?.phase;
  if (before !== undefined && isTerminalPhase(before)) return before;
  if (facts.failure !== undefined) {
    if (isHeldBack(facts)) return before ?? heldPhase(runningPhase(facts, init, regular));
    const isWell =
      facts.failure.mayEndWell && runningPhase({ ...facts, finished: true }, init, regular) === "Succeeded";
    return isWell ? "Succeeded" : "Failed";
  }
  if (facts.restartingAll === true && !facts.finished) return before ?? "Pending";
  const phase = runningPhase(facts, init, regular);
  return facts.finished && !isTerminalPhase(phase) ? "Failed" : phase;
}

function runningPhase(
  facts: StatusFacts,
  init: readonly ContainerStatus[],
  regular: readonly ContainerStatus[],
): string {
  const { pod } = facts;
  const plain = init.filter((status) => !isSidecarOf(pod, status.name));
  const sidecars = init.filter((status) => isSidecarOf(pod, status.name));
  if (plain.some((status) => isFailedForGood(pod, status))) return "Failed";
  // In a new sandbox the init containers run again, whatever the regular ones did in the one before.
  if (plain.some((status) => status.state?.running !== undefined || isNew(status))) return "Pending";
  if (sidecars.some(isStarting) && !hasActiveRegular(facts)) return "Pending";
  if ([...sidecars, ...regular].some(isNew)) return "Pending";
  if ([...sidecars, ...regular].some((status) => status.state?.running !== undefined)) return "Running";
  const exits = regular.flatMap((status) => lastExit(status) ?? []);
  if (exits.length < regular.length || exits.length === 0) return "Pending";
  const goesOn = regular.some((status) => {
    const exit = lastExit(status);
    return exit !== undefined && mayRestart(pod, exit, specOf(pod, status.name));
  });
  if (!facts.finished && goesOn) return "Running";
  return exits.every(({ exitCode }) => exitCode === 0) ? "Succeeded" : "Failed";
}

/** A terminal phase is published only when nothing of the pod runs any more: a controller may replace the pod then. */
function isHeldBack({ observed, finished }: StatusFacts): boolean {
  return !finished && observed.containers.some(({ state }) => state === "running" || state === "unknown");
}

/** The phase of a pod that an earlier agent began to stop, while a container of it runs. */
function heldPhase(phase: string): string {
  return isTerminalPhase(phase) ? "Running" : phase;
}

function isFailedForGood(pod: Pod, status: ContainerStatus): boolean {
  const exit = lastExit(status);
  return exit !== undefined && exit.exitCode !== 0 && !mayRestart(pod, exit, specOf(pod, status.name));
}

/** How the container ended, now or (while it waits to be started again) the last time. */
function lastExit(status: ContainerStatus): Terminated {
  return status.state?.terminated ?? (status.state?.waiting === undefined ? undefined : status.lastState?.terminated);
}

/** True for a container that waits for its very first start. */
function isNew(status: ContainerStatus): boolean {
  return status.state?.waiting !== undefined && status.lastState?.terminated === undefined;
}

/** True for a sidecar that has not passed its startup probe yet. */
function isStarting(status: ContainerStatus): boolean {
  return isNew(status) || (status.state?.running !== undefined && status.started !== true);
}

/** True once a regular container exists in the sandbox that the pod has now. */
function hasActiveRegular({ pod, observed }: StatusFacts): boolean {
  const [newest] = observed.sandboxes;
  if (newest?.state !== "ready") return false;
  return observed.containers.some(
    ({ name, sandboxId }) =>
      sandboxId === newest.id && pod.spec.containers.some((container) => container.name === name),
  );
}

function specOf(pod: Pod, name: string): Container | undefined {
  return [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find((container) => container.name === name);
}
