import type { Pod } from "../../model/generated/types.ts";
import { isSidecar } from "../../model/pod-facts.ts";
import type { AdmissionFacts, Rejection } from "./facts.ts";

interface HostPort {
  readonly port: number;
  readonly protocol: string;
  readonly ip: string;
}

/** Host ports that another pod already uses. */
export function portProblem(pod: Pod, { others }: AdmissionFacts): Rejection | undefined {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return undefined;
  for (const other of others) {
    for (const taken of hostPorts(other)) {
      if (!wanted.some((port) => clashes(port, taken))) continue;
      const message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
      return { reason: "NodePorts", message };
    }
  }
  return undefined;
}

function hostPorts({ spec }: Pod): HostPort[] {
  const sidecars = (spec.initContainers ?? []).filter(isSidecar);
  return [...spec.containers, ...sidecars].flatMap((container) =>
    (container.ports ?? [])
      .filter((port) => (port.hostPort ?? 0) > 0)
      .map((port) => ({ port: port.hostPort ?? 0, protocol: port.protocol ?? "TCP", ip: port.hostIP ?? "" })),
  );
}

function clashes(a: HostPort, b: HostPort): boolean {
  const isAny = (ip: string): boolean => ip === "" || ip === "0.0.0.0" || ip === "::";
  return a.port === b.port && a.protocol === b.protocol && (isAny(a.ip) || isAny(b.ip) || a.ip === b.ip);
}
