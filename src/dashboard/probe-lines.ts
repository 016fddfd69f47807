import type { Container, Pod, Probe } from "../model/generated/types.ts";
import type { ProbeLine } from "../model/page-lines.ts";
import { declaredContainers } from "../model/pod-facts.ts";

/** The probes of a pod in words. Pure. */
export function probeLines(pod: Pod): readonly ProbeLine[] {
  return declaredContainers(pod).flatMap((container) => {
    const lines = (["startup", "liveness", "readiness"] as const).map((kind) =>
      lineOf(container, kind, container[`${kind}Probe`]),
    );
    return lines.filter((line) => line !== undefined);
  });
}

function lineOf({ name }: Container, kind: ProbeLine["kind"], probe: Probe | undefined): ProbeLine | undefined {
  if (probe === undefined) return undefined;
  const { periodSeconds = 10, failureThreshold = 3 } = probe;
  return { container: name, kind, check: checkOf(probe), periodSeconds, failureThreshold };
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
