import type { Container, Pod, PodStatus, ResourceRequirements, ResourceStatus } from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import type { PodProbeResults } from "../../model/probe.ts";
import type { WaitingReason } from "./derive-container.ts";

/** All that a pod's status is made from. */
export interface StatusFacts {
  readonly pod: Pod;
  readonly observed: ObservedPod;
  readonly previous: PodStatus | undefined;
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  readonly probes?: PodProbeResults;
  readonly runtimeName: string;
  readonly hostIps: readonly string[];
  /** Wall-clock milliseconds. */
  readonly now: number;
  /** The pod is being stopped: nothing of it starts any more. */
  readonly terminating: boolean;
  /** Its containers have all stopped for good: the phase becomes terminal. */
  readonly finished: boolean;
  readonly hasRecursiveReadOnly?: boolean;
  readonly showsVolumeImages?: boolean;
  /** The actual resources of a container; absent or undefined means the allocated ones. */
  actualOf?(container: ObservedContainer): ResourceRequirements | undefined;
  /** The actual resources of the pod as a whole. */
  readonly actualPod?: ResourceRequirements | undefined;
  /** Why a resize is deferred or infeasible. */
  readonly resizePending?: { readonly reason: string; readonly message: string } | undefined;
  /** A resize is in progress; `error` is why it does not proceed. */
  readonly resizing?: { readonly error?: string | undefined } | undefined;
  /** The health of what the node allocated to a container. */
  healthOf?(container: Container): readonly ResourceStatus[];
  /** All containers are being restarted together: a missing one is not lost. */
  readonly restartingAll?: boolean;
  /** Forces a terminal phase, for example past its deadline or rejected at admission. */
  readonly failure?: StatusFailure;
}

/** Why the agent itself fails a pod. */
export interface StatusFailure {
  readonly reason: string;
  readonly message: string;
  /** The message of the condition DisruptionTarget, for a pod that did not fail by itself. */
  readonly disruption?: string;
  /** Succeeded if every container ended with 0, as a preempted pod does in Kubernetes. */
  readonly mayEndWell?: boolean;
  /** Counts only until the machine is started again, as a shutdown of it does. */
  readonly untilReboot?: boolean;
}
