import type { Container, Pod, Probe } from "../model/generated/types.ts";
import { isSidecar } from "../model/pod-facts.ts";
import type { ProbeKind } from "../model/probe.ts";
import type { ProbeRules } from "./decide.ts";

const SECOND = 1000;

/** In the order in which they run in the life of a container. */
export const PROBE_KINDS: readonly ProbeKind[] = ["startup", "liveness", "readiness"];

/** Returns the probe of this kind, if the container has one. */
export function probeOf(container: Container, kind: ProbeKind): Probe | undefined {
  switch (kind) {
    case "startup":
      return container.startupProbe;
    case "liveness":
      return container.livenessProbe;
    case "readiness":
      return container.readinessProbe;
  }
}

/** Returns the regular containers and sidecars that have a probe. */
export function probedContainers(pod: Pod): readonly Container[] {
  const all = [...(pod.spec.initContainers ?? []).filter(isSidecar), ...pod.spec.containers];
  return all.filter((container) => PROBE_KINDS.some((kind) => probeOf(container, kind) !== undefined));
}

/** Returns the rules of a probe with its defaults; 0 means the default, as in the API. */
export function rulesOf(kind: ProbeKind, probe: Probe, upstreamTiming: boolean): ProbeRules {
  return {
    kind,
    periodMs: (probe.periodSeconds || 10) * SECOND,
    initialDelayMs: (probe.initialDelaySeconds ?? 0) * SECOND,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
    upstreamTiming,
  };
}

/** Returns the timeout of one run in milliseconds, redirects included. */
export function timeoutOf(probe: Probe): number {
  return (probe.timeoutSeconds || 1) * SECOND;
}
