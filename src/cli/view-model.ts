import type { PodSummary } from "../model/step.ts";
import type { PortState } from "./launcher.ts";
import { isBusy } from "./words.ts";

/** Everything that the live view shows, at one moment. */
export interface ViewModel {
  /** Such as `kubelet v1.36.3+kubelet-ts.0.1.0`. */
  readonly title: string;
  readonly stateDir: string;
  readonly logFile: string;
  readonly runtime: string;
  readonly ports: readonly PortState[];
  /** The kubeconfig of the local API. */
  readonly kubeconfig: string;
  /** The current step of the start; undefined once the agent is running. */
  readonly starting: { readonly text: string; readonly since: number } | undefined;
  readonly pods: readonly PodSummary[];
  readonly urls: readonly string[];
  /** The name of the program, with the flags that select this agent. */
  readonly program: string;
  /** Flags to add to commands, such as `--state-dir X`; empty for the default directory. */
  readonly flags: string;
}

/** True if a step is running whose clock is shown. */
export function isMoving(model: ViewModel, now: number): boolean {
  const hasClock = (pod: PodSummary): boolean => isBusy(pod.step) || (pod.next !== undefined && pod.next.at > now);
  return model.starting !== undefined || model.pods.some(hasClock);
}
