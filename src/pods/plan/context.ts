import type { Instant } from "../../lib/clock.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import { NO_PROBE_RESULTS, type PodProbeResults } from "../../model/probe.ts";
import type { ContainerWait, PlanFacts, PlanMemory, PodAction } from "./pod-plan.ts";

/** What every part of a plan is computed from. */
export interface PlanContext {
  readonly pod: Pod;
  readonly facts: PlanFacts;
  readonly observed: ObservedPod;
  readonly memory: PlanMemory;
  readonly probes: PodProbeResults;
  readonly now: Instant;
}

/** A part of a plan: actions in their order, and the containers that have to wait. */
export interface PlanPart {
  readonly actions: readonly PodAction[];
  readonly waits: readonly ContainerWait[];
}

/** A running container, and which list of the pod it is in. */
export interface RunningContainer {
  readonly container: Container;
  readonly running: ObservedContainer;
  readonly kind: "init" | "regular";
}

/** The part that does nothing. */
export const NOTHING: PlanPart = { actions: [], waits: [] };

export function planContext(pod: Pod, facts: PlanFacts, now: Instant): PlanContext {
  const { observed, memory, probes = NO_PROBE_RESULTS } = facts;
  return { pod, facts, observed, memory, probes, now };
}

/** Several parts as one, in their order. */
export function inOrder(...parts: readonly PlanPart[]): PlanPart {
  return { actions: parts.flatMap(({ actions }) => actions), waits: parts.flatMap(({ waits }) => waits) };
}

/** A part of actions that wait for nothing. */
export function act(...actions: readonly PodAction[]): PlanPart {
  return { actions, waits: [] };
}

/** A part that only waits. */
export function waitFor(...waits: readonly ContainerWait[]): PlanPart {
  return { actions: [], waits };
}

/** The newest instance of a container, in whichever sandbox it is. */
export function newestOf(observed: ObservedPod, name: string): ObservedContainer | undefined {
  return observed.containers.find((container) => container.name === name);
}
