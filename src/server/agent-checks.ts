import type { Clock } from "../lib/clock.ts";
import { type HealthCheck, ping } from "./health.ts";

/** A runtime that was not listed for so long is a problem; as in Kubernetes twice the sync frequency, if that is more. */
const STUCK_MS = 300_000;
/** A call to the runtime that takes longer is a problem, in milliseconds. */
const LONG_CALL_MS = 60_000;

export interface AgentCheckDeps {
  readonly clock: Clock;
  /** Milliseconds. */
  syncFrequency(): number;
  /** Time of the last relist; undefined before the first. */
  listedAt(): { readonly wall: number; readonly mono: number } | undefined;
  /** Calls to the runtime that have not ended. */
  readonly calls: {
    /** Monotonic time at which a call last ended, well or not. */
    readonly endedAt: number;
    stuck(limitMs: number): { readonly name: string; readonly ageMs: number } | undefined;
  };
  readonly lag: { problem(): string | undefined };
  /** Why device plugins cannot register; undefined if they can. */
  registrationTrouble?(): string | undefined;
}

/** The health checks of the agent. */
export function agentChecks(deps: AgentCheckDeps): readonly HealthCheck[] {
  const { clock, syncFrequency, listedAt, calls, lag } = deps;
  return [
    ping,
    // Log lines are written without waiting, so there is no flush that could hang.
    { name: "log", problem: () => undefined },
    {
      name: "syncloop",
      problem: () => {
        const listed = listedAt();
        if (listed === undefined) return undefined;
        const age = clock.now().mono - listed.mono;
        if (age <= Math.max(STUCK_MS, 2 * syncFrequency())) return undefined;
        const since = new Date(listed.wall).toISOString();
        return `pods of the runtime were last listed at ${since}, ${Math.round(age / 1000)} s ago`;
      },
    },
    {
      name: "runtime-calls",
      problem: () => {
        const call = calls.stuck(LONG_CALL_MS);
        return call && `${call.name} has been running for ${Math.round(call.ageMs / 1000)} s`;
      },
    },
    { name: "event-loop", problem: () => lag.problem() },
    {
      name: "device-plugin",
      problem: () => {
        const trouble = deps.registrationTrouble?.();
        if (trouble === undefined) return undefined;
        const failed = "device plugin registration gRPC server failed and no device plugins can register";
        return `device registration error: ${failed}: ${trouble}`;
      },
    },
  ];
}

/**
 * Why the agent makes no progress; undefined if it does. A runtime that is down is not a reason: calls to it end, and a
 * restart of the agent would not help.
 */
export function stalledReason({
  clock,
  syncFrequency,
  calls,
  lag,
}: Omit<AgentCheckDeps, "listedAt">): string | undefined {
  const late = lag.problem();
  if (late !== undefined) return late;
  const age = clock.now().mono - calls.endedAt;
  if (age <= Math.max(STUCK_MS, 2 * syncFrequency())) return undefined;
  return `no call to the runtime has ended for ${Math.round(age / 1000)} s`;
}
