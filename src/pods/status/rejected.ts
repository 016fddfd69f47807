import type { Pod, PodStatus } from "../../model/generated/types.ts";
import { qosClass } from "../../model/qos.ts";
import type { Rejection } from "../admission/facts.ts";
import { time } from "./derive-container.ts";

/** The status of a pod that is not admitted. `now` is wall-clock milliseconds. Pure. */
export function rejectedStatus(pod: Pod, { reason, message }: Rejection, now: number): PodStatus {
  const { generation } = pod.metadata;
  return {
    phase: "Failed",
    reason,
    message: `Pod was rejected: ${message}`,
    qosClass: qosClass(pod),
    startTime: pod.status?.startTime ?? time(now),
    ...(generation !== undefined && { observedGeneration: generation }),
  };
}
