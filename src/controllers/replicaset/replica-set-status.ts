import type { Pod, ReplicaSet, ReplicaSetCondition, ReplicaSetStatus } from "../../model/generated/types.ts";
import { matchesLabels } from "../../model/label-selector.ts";
import { isAvailable, isReady } from "../pod-state.ts";

const FAILURE = "ReplicaFailure";

export interface ReplicaSetFacts {
  /** Pods that run or will. */
  readonly active: readonly Pod[];
  /** Pods that are being deleted. */
  readonly terminating: readonly Pod[];
  /** Why pods could not be created or deleted. */
  readonly failure: string | undefined;
  readonly nowMs: number;
  readonly now: string;
}

/** The status of a set with these pods. Pure. */
export function replicaSetStatus({ metadata, spec, status }: ReplicaSet, facts: ReplicaSetFacts): ReplicaSetStatus {
  const { active, terminating, nowMs } = facts;
  const ready = active.filter(isReady);
  const matchLabels = spec.template?.metadata?.labels ?? {};
  const { conditions: _old, ...rest } = status ?? { replicas: 0 };
  const conditions = withFailure({ metadata, spec, ...(status && { status }) }, facts);
  return {
    ...rest,
    replicas: active.length,
    fullyLabeledReplicas: active.filter((pod) => matchesLabels({ matchLabels }, pod.metadata.labels)).length,
    readyReplicas: ready.length,
    availableReplicas: ready.filter((pod) => isAvailable(pod, spec.minReadySeconds ?? 0, nowMs)).length,
    terminatingReplicas: terminating.length,
    observedGeneration: metadata.generation ?? 0,
    ...(conditions.length > 0 && { conditions }),
  };
}

function withFailure({ spec, status }: ReplicaSet, { active, failure, now }: ReplicaSetFacts) {
  const known: readonly ReplicaSetCondition[] = status?.conditions ?? [];
  const others = known.filter(({ type }) => type !== FAILURE);
  if (failure === undefined) return others;
  if (others.length < known.length) return known;
  const reason = active.length < (spec.replicas ?? 1) ? "FailedCreate" : "FailedDelete";
  return [...others, { type: FAILURE, status: "True", lastTransitionTime: now, reason, message: failure }];
}
