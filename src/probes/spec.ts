import type { Container, Pod, Probe } from "../model/generated/types.ts";
import { isSidecar } from "../model/pod-facts.ts";
import type { ProbeKind } from "../model/probe.ts";
import type { ProbeRules } from "./decide.ts";

const SECOND = 1000;

/** The order is that of a container's life. */
export const PROBE_KINDS: readonly ProbeKind[] = ["startup", "liveness", "readiness"];

/** The probe of a kind that a container has. */
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

/** The containers of a pod that are probed and have something to be probed for: regular ones and sidecars. */
export function probedContainers(pod: Pod): readonly Container[] {
  const all = [...(pod.spec.initContainers ?? []).filter(isSidecar), ...pod.spec.containers];
  return all.filter((container) => PROBE_KINDS.some((kind) => probeOf(container, kind) !== undefined));
}

/** A probe's numbers with their defaults; 0 stands for the default, as in the API. */
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

/** How long one run may take, redirects included. */
export function timeoutOf(probe: Probe): number {
  return (probe.timeoutSeconds || 1) * SECOND;
}
