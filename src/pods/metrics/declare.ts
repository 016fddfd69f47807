import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { DesiredPods } from "../desired.ts";
import type { Journal } from "../journal.ts";
import type { AgentView } from "../status/view.ts";
import type { WorkerPool } from "../worker/pool.ts";
import { declareNodeGauges, type NodeGaugeSources } from "./node-gauges.ts";
import { countOutcomes } from "./outcome-metrics.ts";
import { countPods } from "./pod-metrics.ts";
import { countRequestedResizes, countResizes } from "./resize-metrics.ts";

export interface AllPodMetricsDeps extends NodeGaugeSources {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly journal: Journal;
  readonly desired: DesiredPods;
  readonly pool: WorkerPool;
  readonly view: Pick<AgentView, "summaries">;
}

/** Declares all metrics about pods, and counts until the signal aborts. */
export function declarePodMetrics(deps: AllPodMetricsDeps, options: Abortable): void {
  const { metrics, view } = deps;
  const phases = (): Iterable<readonly [readonly string[], number]> => {
    const counted = new Map<string, number>();
    for (const { phase } of view.summaries()) counted.set(phase, (counted.get(phase) ?? 0) + 1);
    return [...counted].map(([phase, count]) => [[phase], count] as const);
  };
  metrics.gaugeFrom("kubelet_ts_pods", "Number of pods by phase.", { labels: ["phase"], values: phases });
  for (const count of [countPods, countOutcomes, countResizes, countRequestedResizes]) count(deps, options);
  declareNodeGauges(metrics, deps);
}
