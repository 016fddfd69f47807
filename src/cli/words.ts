import { ago, type CellStyle } from "../lib/table.ts";
import type { PodStep, PodSummary } from "../model/step.ts";

/** The name of a running step, for users. */
const DOING: Readonly<Record<PodStep["step"], string>> = {
  admitted: "admitted",
  waiting: "waiting",
  volumes: "preparing volumes",
  sandbox: "making sandbox",
  network: "setting up network",
  pull: "pulling image",
  create: "creating",
  start: "starting",
  running: "running",
  backoff: "waiting to restart",
  resize: "resize",
  kill: "stopping",
  hook: "running hook",
  probe: "probing",
  terminate: "terminating",
  remove: "removing",
  finished: "finished",
};

/** `pulling image web: demo:1`, with `time` behind what is done, so that a cut line still shows it. */
export function stepWords(step: PodStep, time = ""): string {
  const of = step.container === undefined || step.container === "" ? "" : ` ${step.container}`;
  return `${DOING[step.step]}${of}${time}${step.detail === "" ? "" : `: ${step.detail}`}`;
}

/** True while the step goes on and is one that ends by itself: it deserves a running clock. */
export function isBusy(step: PodStep | undefined): boolean {
  return step !== undefined && step.until === undefined && step.step !== "running" && step.step !== "finished";
}

/** The duration of a step, until now if it is running. */
export function stepTime(step: PodStep, now: number): string {
  return ago(Math.max(0, (step.until ?? now) - step.since));
}

/** Green is healthy, yellow is in progress, red needs attention, dim is completed. */
export function stateStyle(pod: Pick<PodSummary, "state" | "readyContainers" | "totalContainers">): CellStyle {
  if (/BackOff|Err|Failed|Error|OOM|Invalid|Unknown/.test(pod.state)) return "red";
  if (pod.state === "Running") return pod.readyContainers === pod.totalContainers ? "green" : "yellow";
  if (pod.state === "Succeeded" || pod.state === "Completed") return "dim";
  return "yellow";
}

/** What a pod is doing beyond its state: the next retry, or its step with its time. Empty if it is idle. */
export function nowWords(pod: PodSummary, now: number): string {
  const { step, next } = pod;
  const parts: string[] = [];
  if (next !== undefined && next.at > now) parts.push(`next try in ${ago(next.at - now)}`);
  if (step !== undefined && isBusy(step)) parts.push(stepWords(step, ` (${stepTime(step, now)})`));
  return parts.join(", ");
}
