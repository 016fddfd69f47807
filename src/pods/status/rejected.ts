import type { Pod, PodStatus } from "../../model/generated/types.ts";
import { qosClass } from "../../model/qos.ts";
import type { Rejection } from "../admission/facts.ts";
import { time } from "./derive-container.ts";

/**
 * The status of a pod that is not admitted. One that ran before a reboot has no containers any more, so those and its
 * conditions are removed, as in Kubernetes. `now` is wall-clock milliseconds. Pure.
 */
export function rejectedStatus(pod: Pod, { reason, message }: Rejection, now: number): PodStatus {
  const { generation } = pod.metadata;
  return {
    phase: "Failed",
    reason,
    message: `Pod was rejected: ${message}`,
    qosClass: qosClass(pod),
    startTime: pod.status?.startTime ?? time(now),
    ...(generation !== undefined && { observedGeneration: generation }),
    ...withoutContainers(pod.status ?? {}),
  };
}

function withoutContainers(before: PodStatus): PodStatus {
  const lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] as const;
  const { conditions } = before;
  return {
    ...Object.fromEntries(lists.filter((list) => (before[list] ?? []).length > 0).map((list) => [list, []])),
    ...(conditions !== undefined && { conditions: conditions.filter(({ type }) => type === "PodScheduled") }),
  };
}
