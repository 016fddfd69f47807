import type { agentOptions, OptionStore } from "../../config/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import { derive } from "../../lib/live.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { LogRotator, type RotatorDeps } from "./log-rotator.ts";
import { ROTATION_SETTINGS, rotationOptions } from "./rotation-options.ts";

/** Where pods are observed, and who reports that one has changed. */
export interface RotatedPods {
  readonly store: OptionStore<typeof agentOptions>;
  readonly observer: { get(uid: string): ObservedPod | undefined; list(): readonly ObservedPod[] };
  readonly pool: { onStatus(fn: (uid: string) => void, options: Abortable): void };
}

/** Rotates the logs of all running containers, by the agent's settings, until the signal aborts. */
export function rotateLogs(deps: Omit<RotatorDeps, "pods">, pods: RotatedPods, signal: AbortSignal): void {
  const { store, observer, pool } = pods;
  // Read several times by each check of a log, and a quantity is parsed in it.
  const options = derive(store.live(...ROTATION_SETTINGS), rotationOptions);
  const rotator = new LogRotator({ ...deps, pods: () => observer.list() }, options, signal);
  pool.onStatus((uid) => rotator.follow(uid, observer.get(uid)), { signal });
}
