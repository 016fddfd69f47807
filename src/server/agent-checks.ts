import type { Clock } from "../lib/clock.ts";
import { type HealthCheck, ping } from "./health.ts";

/** A runtime that was not listed for so long is a problem; as in Kubernetes twice the sync frequency, if that is more. */
const STUCK_MS = 300_000;

export interface AgentCheckDeps {
  readonly clock: Clock;
  /** Milliseconds. */
  syncFrequency(): number;
  /** Time of the last relist; undefined before the first. */
  listedAt(): { readonly wall: number; readonly mono: number } | undefined;
}

/** The health checks of the agent. */
export function agentChecks({ clock, syncFrequency, listedAt }: AgentCheckDeps): readonly HealthCheck[] {
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
    // Device plugins are not supported yet, so nothing of them can fail.
    { name: "device-plugin", problem: () => undefined },
  ];
}
