import type { AgentOptions } from "../config/index.ts";
import { ProbeScheduler } from "./scheduler.ts";

type SchedulerDeps = ConstructorParameters<typeof ProbeScheduler>[0];

/** The settings that decide how pods are probed. */
export interface ProbeSettings {
  readonly options: Pick<AgentOptions, "upstreamProbeTiming">;
  readonly machine: { readonly addresses: readonly string[] };
}

/** The probe scheduler as configured; runs until the signal aborts. */
export function composeProbes(deps: SchedulerDeps, settings: ProbeSettings, signal: AbortSignal): ProbeScheduler {
  const { options, machine } = settings;
  return new ProbeScheduler(
    deps,
    {
      upstreamTiming: options.upstreamProbeTiming,
      random: Math.random,
      get hostIp() {
        return machine.addresses[0] ?? "127.0.0.1";
      },
    },
    signal,
  );
}
