import type { ContainerStatus, Pod } from "../model/generated/types.ts";
import type { ContainerRecord } from "./records.ts";

/** What is known about a container that is older than the agent. */
export interface EarlierKnowledge {
  /** As an earlier run of this agent persisted it. */
  readonly record: ContainerRecord | undefined;
  /** As the API has it: written by an earlier run, or by another kubelet whose node this agent has taken over. */
  readonly reported: ContainerStatus | undefined;
}

/**
 * Returns what still holds for this instance. A container that has started stays started. Readiness is taken from the
 * API where that is about the same instance, as in Kubernetes: it never flips because the agent was exchanged, and the
 * record may be older than the agent that ran in between.
 */
export function carriedOver(containerId: string, { record, reported }: EarlierKnowledge): ContainerRecord {
  const same = idOf(reported) === containerId ? reported : undefined;
  return {
    started: record?.started === true || same?.started === true,
    ready: same === undefined ? record?.ready === true : same.ready,
  };
}

/** Returns the status of a container in the API, whatever kind of container it is. */
export function reportedStatus({ status }: Pod, name: string): ContainerStatus | undefined {
  const named = (one: ContainerStatus): boolean => one.name === name;
  return status?.containerStatuses?.find(named) ?? status?.initContainerStatuses?.find(named);
}

/** The API has the id with the name of the runtime before it. */
function idOf(status: ContainerStatus | undefined): string | undefined {
  return status?.containerID?.replace(/^[^:]*:\/\//, "");
}
