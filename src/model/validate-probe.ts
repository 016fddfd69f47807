import type { Container, Probe } from "./generated/types.ts";
import type { Problems } from "./problems.ts";

const HANDLERS = ["exec", "httpGet", "tcpSocket", "grpc"] as const;
const LIMITLESS = [0, Number.POSITIVE_INFINITY] as const;
const COUNTS = [
  "initialDelaySeconds",
  "timeoutSeconds",
  "periodSeconds",
  "successThreshold",
  "failureThreshold",
  "terminationGracePeriodSeconds",
] as const;

/** Checks a container's probes. */
export function checkProbes(path: string, container: Container, problems: Problems): void {
  for (const kind of ["livenessProbe", "readinessProbe", "startupProbe"] as const) {
    const probe = container[kind];
    if (probe === undefined) continue;
    checkProbe(`${path}.${kind}`, probe, problems);
    if (kind !== "readinessProbe" && (probe.successThreshold ?? 1) !== 1) {
      const fix = "write 1, or leave it out";
      problems.add(`${path}.${kind}.successThreshold`, probe.successThreshold, { message: "must be 1", fix });
    }
  }
}

function checkProbe(path: string, probe: Probe, problems: Problems): void {
  const handlers = HANDLERS.filter((handler) => probe[handler] !== undefined);
  if (handlers.length !== 1) {
    const fix = handlers.length === 0 ? `add one of ${HANDLERS.join(", ")}` : `keep one of ${handlers.join(", ")}`;
    problems.add(path, undefined, { message: "must specify a handler type", fix });
  }
  for (const field of COUNTS) problems.range(`${path}.${field}`, probe[field], LIMITLESS);
}
