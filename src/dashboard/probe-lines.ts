import type { Pod, Probe } from "../model/generated/types.ts";
import type { ProbeLine } from "../model/page-lines.ts";
import { declaredContainers } from "../model/pod-facts.ts";
import type { ProbeReport } from "../model/probe.ts";

/** The probes that a pod declares, each with what is known of it. Pure. */
export function probeLines(pod: Pod, reports: readonly ProbeReport[]): readonly ProbeLine[] {
  return declaredContainers(pod).flatMap((container) => {
    const { name } = container;
    return (["startup", "liveness", "readiness"] as const).flatMap((kind): ProbeLine[] => {
      const probe = container[`${kind}Probe`];
      if (probe === undefined) return [];
      const report = reports.find((one) => one.container === name && one.kind === kind);
      return [{ ...rulesOf(probe), ...report, container: name, kind }];
    });
  });
}

/** With the defaults of Kubernetes for what a manifest leaves out. */
function rulesOf(probe: Probe): Omit<ProbeLine, "container" | "kind"> {
  const { periodSeconds = 10, timeoutSeconds = 1, successThreshold = 1, failureThreshold = 3 } = probe;
  return { check: checkOf(probe), periodSeconds, timeoutSeconds, successThreshold, failureThreshold };
}

function checkOf({ httpGet, tcpSocket, grpc, exec }: Probe): string {
  if (httpGet !== undefined) {
    const { scheme = "HTTP", host = "", port, path = "/" } = httpGet;
    return `${scheme} GET ${host}:${port}${path}`;
  }
  if (tcpSocket !== undefined) return `TCP ${tcpSocket.host ?? ""}:${tcpSocket.port}`;
  if (grpc !== undefined) return `gRPC :${grpc.port}${grpc.service === undefined ? "" : ` ${grpc.service}`}`;
  return exec === undefined ? "" : `exec ${(exec.command ?? []).join(" ")}`;
}
