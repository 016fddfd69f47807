import type { Abortable } from "../../lib/abort.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import type { Pod } from "../../model/generated/types.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import type { ShutdownPods } from "./node-shutdown.ts";

/** The workers of pods, as far as a shutdown needs them. */
export interface PodPool {
  uids(): readonly string[];
  worker(uid: string):
    | {
        readonly pod: Pod;
        readonly life: { readonly phase: "syncing" | "stopping" | "stopped" | "gone" };
        evict(
          failure: { reason: string; message: string; disruption?: string; untilReboot?: boolean },
          graceSeconds: number,
        ): void;
      }
    | undefined;
  /** True when nothing of the pod runs or is mounted any more. */
  isFinished(uid: string): boolean;
  onStatus(fn: (uid: string) => void, options: Abortable): void;
}

const MESSAGE = "Pod was terminated in response to imminent node shutdown.";
const FAILURE = { reason: "Terminated", message: MESSAGE, disruption: MESSAGE, untilReboot: true };

/** The pods of the agent, for a shutdown. */
export function shutdownPods(pool: PodPool): ShutdownPods {
  const uidOf = (pod: Pod): string => podIdentity(pod).uid;
  return {
    active: () =>
      pool.uids().flatMap((uid) => {
        const worker = pool.worker(uid);
        const { phase } = worker?.life ?? { phase: "gone" };
        return worker !== undefined && (phase === "syncing" || phase === "stopping") ? [worker.pod] : [];
      }),
    terminate: (pod, graceSeconds) => pool.worker(uidOf(pod))?.evict(FAILURE, graceSeconds),
    stopped: (pods, { signal }) => {
      const uids = pods.map(uidOf);
      const done = new AbortController();
      const all = new Promise<void>((resolve) => {
        const check = (): void => {
          if (uids.every((uid) => pool.isFinished(uid))) resolve();
        };
        pool.onStatus(check, done);
        check();
      });
      return orAborted(all, signal).finally(() => done.abort());
    },
  };
}
