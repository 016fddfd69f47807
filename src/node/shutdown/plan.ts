import type { AgentOptions } from "../../config/index.ts";
import { isGateOn } from "../../config/index.ts";
import type { Pod } from "../../model/generated/types.ts";

/** The priority from which on pods are critical. */
const CRITICAL_PRIORITY = 2_000_000_000;

/** The time that pods from a priority on, up to the next one, have at a shutdown. */
export interface ShutdownPeriod {
  readonly priority: number;
  readonly seconds: number;
}

/** Pods that are ended together, after those of lower priority. */
export interface ShutdownGroup extends ShutdownPeriod {
  readonly pods: readonly { readonly pod: Pod; readonly graceSeconds: number }[];
}

type ShutdownOptions = Pick<
  AgentOptions,
  "shutdownGracePeriod" | "shutdownGracePeriodCriticalPods" | "shutdownGracePeriodByPodPriority" | "featureGates"
>;

/**
 * Returns the configured times, the lowest priority first; none if a shutdown does not wait for pods. Without times by
 * priority there are two: the last part is for critical pods. Pure.
 */
export function shutdownPeriods(options: ShutdownOptions): readonly ShutdownPeriod[] {
  const { shutdownGracePeriod, shutdownGracePeriodCriticalPods, featureGates } = options;
  if (!isGateOn("GracefulNodeShutdown", featureGates)) return [];
  const given = isGateOn("GracefulNodeShutdownBasedOnPodPriority", featureGates)
    ? options.shutdownGracePeriodByPodPriority
    : [];
  if (given.length > 0) {
    const periods = given.map(({ priority, shutdownGracePeriodSeconds: seconds }) => ({ priority, seconds }));
    return periods.sort((a, b) => a.priority - b.priority);
  }
  if (shutdownGracePeriod <= 0 || shutdownGracePeriodCriticalPods > shutdownGracePeriod) return [];
  const wholeSeconds = (ms: number): number => Math.floor(ms / 1000);
  return [
    { priority: 0, seconds: wholeSeconds(shutdownGracePeriod - shutdownGracePeriodCriticalPods) },
    { priority: CRITICAL_PRIORITY, seconds: wholeSeconds(shutdownGracePeriodCriticalPods) },
  ];
}

/** The whole time that a shutdown has to wait, in milliseconds. Pure. */
export function requestedMs(periods: readonly ShutdownPeriod[]): number {
  return periods.reduce((sum, { seconds }) => sum + seconds, 0) * 1000;
}

/**
 * Returns who is ended when, the lowest priority first. A pod belongs to the highest period that it reaches, one below
 * all of them to the lowest; no pod has longer than its own grace period. Pure.
 */
export function shutdownGroups(periods: readonly ShutdownPeriod[], pods: readonly Pod[]): readonly ShutdownGroup[] {
  const groupOf = (pod: Pod): number => {
    const reached = periods.findLastIndex(({ priority }) => (pod.spec.priority ?? 0) >= priority);
    return Math.max(0, reached);
  };
  return periods.flatMap((period, index) => {
    const members = pods.filter((pod) => groupOf(pod) === index);
    if (members.length === 0) return [];
    const graceOf = ({ spec }: Pod): number =>
      Math.min(period.seconds, spec.terminationGracePeriodSeconds ?? period.seconds);
    return [{ ...period, pods: members.map((pod) => ({ pod, graceSeconds: graceOf(pod) })) }];
  });
}
