import type { Pod } from "../../model/generated/types.ts";

/** Whether a condition holds, and why not. */
interface Judgement {
  readonly holds: boolean;
  readonly reason?: string;
  readonly message?: string;
}

/** 11.2: Ready asks beside the containers for the conditions that others set on the pod. Pure. */
export function withReadinessGates(containers: Judgement, pod: Pod): Judgement {
  if (!containers.holds) return containers;
  const unmet = (pod.spec.readinessGates ?? []).flatMap(({ conditionType: type }) => {
    const found = pod.status?.conditions?.find((condition) => condition.type === type);
    if (found === undefined)
      return [`corresponding condition of pod readiness gate ${JSON.stringify(type)} does not exist.`];
    if (found.status === "True") return [];
    return [`the status of pod readiness gate ${JSON.stringify(type)} is not "True", but ${found.status}`];
  });
  if (unmet.length === 0) return containers;
  return { holds: false, reason: "ReadinessGatesNotReady", message: unmet.join(", ") };
}
