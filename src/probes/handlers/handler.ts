import type { ProbeNet } from "../../adapters/net/probe-net.ts";
import type { RuntimePort } from "../../adapters/runtime/port.ts";
import type { Container, Probe } from "../../model/generated/types.ts";

/** Dependencies of the handlers. */
export interface HandlerDeps {
  readonly runtime: Pick<RuntimePort, "execSync">;
  readonly net: ProbeNet;
}

/** The container instance that is probed. */
export interface ProbeTarget {
  readonly container: Container;
  readonly containerId: string;
  readonly podIp: string;
}

/** Arguments of one run. */
export interface HandlerRun {
  readonly target: ProbeTarget;
  /** Aborts with a `TimeLimitError` at the timeout, or when the worker stops. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** Verdict of one run. A warning counts as a success and is reported as an event. */
export interface Verdict {
  readonly result: "success" | "failure" | "warning";
  readonly output: string;
}

/** A kind of probe action. Resolves to a verdict; rejects if the probe cannot be executed. */
export interface ProbeHandler {
  readonly name: "exec" | "httpGet" | "tcpSocket" | "grpc";
  run(deps: HandlerDeps, probe: Probe, run: HandlerRun): Promise<Verdict>;
}

/** A success without output. */
export const SUCCESS: Verdict = { result: "success", output: "" };

export function failed(output: string): Verdict {
  return { result: "failure", output };
}

/** Returns the User-Agent header of probes, as in Kubernetes. */
export function probeUserAgent(version: string): string {
  const [major = "", minor = ""] = version.replace(/^v/, "").split(".");
  return `kube-probe/${major}.${minor}`;
}
