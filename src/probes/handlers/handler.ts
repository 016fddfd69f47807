import type { ProbeNet } from "../../adapters/net/probe-net.ts";
import type { RuntimePort } from "../../adapters/runtime/port.ts";
import type { Container, Probe } from "../../model/generated/types.ts";

/** What handlers act through. */
export interface HandlerDeps {
  readonly runtime: Pick<RuntimePort, "execSync">;
  readonly net: ProbeNet;
}

/** Whom a run is about. */
export interface ProbeTarget {
  readonly container: Container;
  readonly containerId: string;
  readonly podIp: string;
}

/** What a handler is given for one run. */
export interface HandlerRun {
  readonly target: ProbeTarget;
  /** Aborts with a `TimeLimitError` when the time is over, else with the worker. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** The verdict of one run. A warning counts as a success and raises an event. */
export interface Verdict {
  readonly result: "success" | "failure" | "warning";
  readonly output: string;
}

/** One way of probing. Resolves to a verdict; rejects when the probe itself cannot be made, which says nothing. */
export interface ProbeHandler {
  readonly name: "exec" | "httpGet" | "tcpSocket" | "grpc";
  run(deps: HandlerDeps, probe: Probe, run: HandlerRun): Promise<Verdict>;
}

/** Nothing more to say. */
export const SUCCESS: Verdict = { result: "success", output: "" };

export function failed(output: string): Verdict {
  return { result: "failure", output };
}

/** Who the agent is to those whom it probes; servers tell probes from visitors by it. */
export function probeUserAgent(version: string): string {
  const [major = "", minor = ""] = version.replace(/^v/, "").split(".");
  return `kube-probe/${major}.${minor}`;
}
