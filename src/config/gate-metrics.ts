import type { Metrics } from "../lib/metrics.ts";
import { isGateOn, knownGates } from "./feature-gates.ts";

/** Declares `kubernetes_feature_enabled`: every gate with its stage, which is empty for one that is generally available. */
export function declareGateMetrics(metrics: Metrics, given: () => Readonly<Record<string, boolean>>): void {
  metrics.gaugeFrom("kubernetes_feature_enabled", "Whether a feature gate is on, by its stage.", {
    labels: ["name", "stage"],
    values: () =>
      [...knownGates()].map(([name, { stage }]) => {
        return [[name, stage === "GA" ? "" : stage.toUpperCase()], isGateOn(name, given()) ? 1 : 0] as const;
      }),
  });
}
