import type { Pod } from "../../model/generated/types.ts";
import { clashesOnPorts } from "../../model/node-fit.ts";
import type { AdmissionFacts, Rejection } from "./facts.ts";

/** Host ports that another pod already uses. */
export function portProblem(pod: Pod, { others }: AdmissionFacts): Rejection | undefined {
  if (!clashesOnPorts(pod, others)) return undefined;
  const message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
  return { reason: "NodePorts", message };
}
