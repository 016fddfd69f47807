import type { Pod, PodStatus, ResourceRequirements } from "../../model/generated/types.ts";
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
  /** What a container has of cpu and memory; absent or undefined means what it was given. */
  actualOf?(container: ObservedContainer): ResourceRequirements | undefined;
  /** What the pod as a whole has of them. */
  readonly actualPod?: ResourceRequirements | undefined;
  /** Why other requests and limits have to wait for room. */
  readonly resizePending?: { readonly reason: string; readonly message: string } | undefined;
  /** Containers do not have what they were given yet; `error` says what is in the way. */
  readonly resizing?: { readonly error?: string | undefined } | undefined;
  /** All containers are being removed to be started anew: their absence means nothing. */
  readonly restartingAll?: boolean;
  /** Forces the phase Failed, for example past its deadline or refused at admission. */
  readonly failure?: StatusFailure;
}

/** Why a pod is ended as Failed by the agent itself. */
export interface StatusFailure {
  readonly reason: string;
  readonly message: string;
  /** Said in the condition DisruptionTarget, for an end that is not the pod's fault. */
  readonly disruption?: string;
}
