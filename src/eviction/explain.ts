import { thresholdAmount } from "../model/eviction-threshold.ts";
import type { RankingReport, RankReport, SignalReport, ThresholdReport } from "../model/node-pressure.ts";
import { podIdentity } from "../model/pod-facts.ts";
import type { EvictionState } from "./assess.ts";
import type { RankedPod } from "./rank.ts";
import { type Observations, SIGNALS, type Signal, type StarvedResource } from "./signals.ts";
import { formatAvailable, keyOf, type Threshold } from "./thresholds.ts";
import type { Trends } from "./trends.ts";

/** Every signal that was observed, with its thresholds. Pure but for the trends that it reads. */
export function reportSignals(
  observations: Observations,
  thresholds: readonly Threshold[],
  known: { readonly state: EvictionState; readonly trends: Trends; readonly now: number },
): readonly SignalReport[] {
  return [...observations].map(([signal, { available, capacity }]): SignalReport => {
    const perSecond = known.trends.perSecond(signal);
    const own = thresholds.filter((threshold) => threshold.signal === signal);
    return {
      signal,
      unit: unitOf(SIGNALS[signal].resource),
      available,
      capacity,
      ...(perSecond !== undefined && { perSecond }),
      thresholds: own.map((threshold): ThresholdReport => {
        const since = known.state.metSince.get(keyOf(threshold));
        return {
          kind: threshold.graceMs === 0 ? "hard" : "soft",
          value: thresholdAmount(threshold.value, capacity),
          graceMs: threshold.graceMs,
          ...(since !== undefined && { metForMs: known.now - since }),
        };
      }),
    };
  });
}

/** The order of eviction for a signal, with the reason of each place. Pure. */
export function reportRanking(signal: Signal, ranked: readonly RankedPod[]): RankingReport {
  const { resource } = SIGNALS[signal];
  const pods = ranked.map((one): RankReport => {
    const { priority, usage, request } = one;
    const why = reasonOf(one, signal);
    return { ...podIdentity(one.pod), priority, ...(usage !== undefined && { usage }), request, why };
  });
  return { resource, unit: unitOf(resource), pods };
}

function reasonOf({ isCritical, usage, request, exceedsRequest }: RankedPod, signal: Signal): string {
  if (isCritical) return "critical, never evicted";
  if (usage === undefined) return "not measured";
  const amount = (value: number): string => formatAvailable(signal, value);
  const { resource } = SIGNALS[signal];
  if (resource === "pids" || resource === "inodes") return `has ${amount(usage)}`;
  return exceedsRequest ? `exceeds its request by ${amount(usage - request)}` : "within its request";
}

function unitOf(resource: StarvedResource): "bytes" | "count" {
  return resource === "memory" || resource === "ephemeral-storage" ? "bytes" : "count";
}
