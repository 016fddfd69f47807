import type { Container, ContainerStatus, Pod, PodStatus } from "../../model/generated/types.ts";
import type { PodProbeResults } from "../../model/probe.ts";
import { condition, containersReady, countedForReady } from "./derive-conditions.ts";
import { isCreation, readyFlags } from "./derive-container.ts";
import { withReadinessGates } from "./readiness-gates.ts";

/** What a probe's result changes in a status that was derived before. */
export interface FlagFacts {
  readonly pod: Pod;
  readonly probes: PodProbeResults;
  /** Wall-clock milliseconds. */
  readonly now: number;
}

/**
 * Returns the status with current ready and started flags and the conditions derived from them, and nothing else
 * changed. It reads no container state, so it may be called at any moment. Returns the same object if nothing changed.
 */
export function withProbeFlags(status: PodStatus, facts: FlagFacts): PodStatus {
  const { spec } = facts.pod;
  const regular = flagged(status.containerStatuses, spec.containers, { ...facts, kind: "regular" });
  const init = flagged(status.initContainerStatuses, spec.initContainers ?? [], { ...facts, kind: "init" });
  if (regular === status.containerStatuses && init === status.initContainerStatuses) return status;
  const counted = countedForReady(facts.pod, { init: init ?? [], regular: regular ?? [] });
  const judgement = containersReady({ phase: status.phase, regular: counted });
  return {
    ...status,
    conditions: status.conditions?.map((known) =>
      known.type === "Ready" || known.type === "ContainersReady"
        ? condition(known.type, known.type === "Ready" ? withReadinessGates(judgement, facts.pod) : judgement, {
            previous: status,
            now: facts.now,
            ...(status.observedGeneration === undefined ? {} : { generation: status.observedGeneration }),
          })
        : known,
    ),
    ...(init === undefined ? {} : { initContainerStatuses: init }),
    ...(regular === undefined ? {} : { containerStatuses: regular }),
  };
}

const READY_TO_START = "PodReadyToStartContainers";

/** The status with the condition that sandbox, network and volumes are ready. The same object when it said so before. */
export function withReadyToStart(status: PodStatus, now: number): PodStatus {
  if (status.conditions?.some(({ type, status }) => type === READY_TO_START && status === "True") !== false)
    return status;
  const { observedGeneration: generation } = status;
  const facts = { previous: status, now, ...(generation === undefined ? {} : { generation }) };
  const made = condition(READY_TO_START, { holds: true }, facts);
  return { ...status, conditions: status.conditions.map((known) => (known.type === READY_TO_START ? made : known)) };
}

/**
 * The status with a message beside the reason of a container that is being created; undefined removes it. The same object
 * if the container shows anything else, or has the message already.
 */
export function withWaitMessage(status: PodStatus, name: string, message: string | undefined): PodStatus {
  const change = (known: readonly ContainerStatus[] | undefined): readonly ContainerStatus[] | undefined => {
    const waiting = known?.find((one) => one.name === name)?.state?.waiting;
    if (waiting === undefined || !isCreation(waiting.reason) || waiting.message === message) return known;
    const { message: _before, ...rest } = waiting;
    const state = { waiting: message === undefined ? rest : { ...rest, message } };
    return known?.map((one) => (one.name === name ? { ...one, state } : one));
  };
  const { initContainerStatuses, containerStatuses, ephemeralContainerStatuses } = status;
  const known = { initContainerStatuses, containerStatuses, ephemeralContainerStatuses };
  for (const [part, statuses] of Object.entries(known)) {
    const changed = change(statuses);
    if (changed !== statuses) return { ...status, [part]: changed };
  }
  return status;
}

function flagged(
  statuses: readonly ContainerStatus[] | undefined,
  containers: readonly Container[],
  { probes, kind }: FlagFacts & { kind: "init" | "regular" },
): readonly ContainerStatus[] | undefined {
  let changed = false;
  const made = statuses?.map((status) => {
    const container = containers.find(({ name }) => name === status.name);
    if (container === undefined || status.state?.running === undefined) return status;
    const flags = readyFlags(container, status, { kind, probes: probes.get(status.name) });
    if (flags.ready === status.ready && flags.started === status.started) return status;
    changed = true;
    return { ...status, ...flags };
  });
  return changed ? made : statuses;
}
