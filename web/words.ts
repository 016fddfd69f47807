import type { PodStep, StepProgress } from "../src/model/step.ts";
import { ago, bytes } from "./format.ts";

/** Those whose name alone does not say it. */
const DOING: Readonly<Partial<Record<PodStep["step"], string>>> = {
  volumes: "preparing volumes",
  claims: "preparing resource claims",
  sandbox: "making sandbox",
  network: "setting up network",
  pull: "pulling image",
  create: "creating",
  start: "starting",
  backoff: "waiting to restart",
  kill: "stopping",
  hook: "running hook",
  probe: "probing",
  terminate: "terminating",
  remove: "removing",
};

/** A step in words, without its times. */
export function stepWords({ step, container, detail }: PodStep): string {
  const of = container === undefined || container === "" ? "" : ` ${container}`;
  return `${DOING[step] ?? step}${of}${detail === "" ? "" : `: ${detail}`}`;
}

/** How far a pull is. */
export function progressWords({ doneBytes, totalBytes, bytesPerSecond, remainingMs }: StepProgress): string {
  if (totalBytes === undefined || totalBytes === 0) return bytes(doneBytes);
  return [
    `${bytes(doneBytes)} of ${bytes(totalBytes)}`,
    ...(bytesPerSecond === undefined ? [] : [`${bytes(bytesPerSecond)}/s`]),
    ...(remainingMs === undefined ? [] : [`${ago(Math.max(1000, remainingMs))} left`]),
  ].join(", ");
}
