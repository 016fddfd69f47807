import type { Pod, Taint } from "../../model/generated/types.ts";
import { tolerates } from "../../model/node-fit.ts";
import { isCriticalPod } from "../../model/pod-facts.ts";
import { qosClass } from "../../model/qos.ts";
import type { AdmissionFacts, Rejection } from "./facts.ts";

const MEMORY_TAINT: Taint = { key: "node.kubernetes.io/memory-pressure", effect: "NoSchedule" };

/**
 * A node under pressure admits critical pods; under memory pressure alone also those that request something, and
 * best-effort pods that tolerate its taint, as in Kubernetes.
 */
export function pressureProblem(pod: Pod, { node }: AdmissionFacts): Rejection | undefined {
  const conditions = node.pressure ?? [];
  if (conditions.length === 0 || isCriticalPod(pod)) return undefined;
  if (conditions.length === 1 && conditions[0] === "MemoryPressure") {
    const isTolerant = (pod.spec.tolerations ?? []).some((one) => tolerates(one, MEMORY_TAINT, node));
    if (qosClass(pod) !== "BestEffort" || isTolerant) return undefined;
  }
  return { reason: "Evicted", message: `The node had condition: [${conditions.join(" ")}]. ` };
}
