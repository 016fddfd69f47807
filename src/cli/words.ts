import { ago, bytesWords, type CellStyle } from "../lib/table.ts";
import type { PodStep, PodSummary, StepProgress } from "../model/step.ts";

/** The name of a running step, for users. */
const DOING: Readonly<Record<PodStep["step"], string>> = {
  admitted: "admitted",
  waiting: "waiting",
  claims: "preparing resource claims",
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

/**
 * `pulling image web, 12Mi of 80Mi, 4.1Mi/s, 17s left: demo:1`, with `time` behind what is done, so that a cut line still
 * shows what changes.
 */
export function stepWords(step: PodStep, time = ""): string {
  const of = step.container === undefined || step.container === "" ? "" : ` ${step.container}`;
  const progress = step.progress === undefined ? "" : progressWords(step.progress);
  const far = progress === "" ? "" : `, ${progress}`;
  return `${DOING[step.step]}${of}${time}${far}${step.detail === "" ? "" : `: ${step.detail}`}`;
}

/** The detail of a step, and how far it is: `demo:1: pulling, 12Mi of 80Mi, 4.1Mi/s, 17s left`. */
export function detailWords({ detail, progress }: Pick<PodStep, "detail" | "progress">): string {
  return [detail, progress === undefined ? "" : progressWords(progress)].filter((text) => text !== "").join(", ");
}

/** `12Mi of 80Mi, 4.1Mi/s, 17s left`, as far as it is known; empty if there is nothing to transfer. */
function progressWords({ doneBytes, totalBytes, bytesPerSecond, remainingMs }: StepProgress): string {
  if (totalBytes === undefined || totalBytes === 0) return "";
  return [
    `${bytesWords(doneBytes)} of ${bytesWords(totalBytes)}`,
    ...(bytesPerSecond === undefined || doneBytes >= totalBytes ? [] : [`${bytesWords(bytesPerSecond)}/s`]),
    ...(remainingMs === undefined ? [] : [`${ago(Math.max(1000, remainingMs))} left`]),
  ].join(", ");
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
