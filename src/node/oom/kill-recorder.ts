import type { Clock, Timer } from "../../lib/clock.ts";
import type { ObservedPod } from "../../model/observed.ts";
import type { PodIdentity } from "../../model/step.ts";
import type { OomCounts } from "./oom-counts.ts";
import type { ContainerOomKill } from "./oom-watcher.ts";

/** When a kill is recorded whose container was not observed yet, in milliseconds after the time before. */
const RETRIES_MS = [50, 250, 1000, 5000, 30_000];
/** Kills that wait for their container at a time; more are dropped. */
const MOST_WAITING = 200;

export interface KillRecorderDeps {
  readonly clock: Clock;
  /** Where kills are counted by container. */
  readonly oomKills: OomCounts;
  /** Notified of each kill in a container, as it may not notice by itself. */
  readonly runtime?: { killedForMemory?(containerId: string): void };
  /** What is known of a pod's containers. */
  readonly observer: { get(uid: string): ObservedPod | undefined };
  /** Where events about pods are recorded. */
  readonly journal: {
    of(pod: PodIdentity): {
      event(type: "Warning", reason: string, what: { message: string; container: string }): void;
    };
  };
}

/**
 * Records OOM kills with their containers: a count, and an event about the pod, which `explain` shows with its count. A
 * container may be killed before its start was observed, so one that is unknown is looked up again for a while.
 */
export class KillRecorder {
  private readonly waiting = new Set<Timer>();

  constructor(private readonly deps: KillRecorderDeps) {}

  /** Records the kill now or as soon as its container is known; drops it if that does not happen. */
  record(kill: ContainerOomKill): void {
    this.attempt(kill, RETRIES_MS);
  }

  /** Drops the kills that wait. */
  close(): void {
    for (const timer of this.waiting) timer.cancel();
    this.waiting.clear();
  }

  private attempt(kill: ContainerOomKill, [ms, ...later]: readonly number[]): void {
    if (this.recordKnown(kill) || ms === undefined || this.waiting.size >= MOST_WAITING) return;
    const timer = this.deps.clock.after(ms, () => {
      this.waiting.delete(timer);
      this.attempt(kill, later);
    });
    this.waiting.add(timer);
  }

  /** False if the container is unknown. The process chose its own name. */
  private recordKnown({ podUid, containerId, process, isSystem }: ContainerOomKill): boolean {
    const { observer, journal, oomKills, runtime } = this.deps;
    const pod = observer.get(podUid);
    const container = pod?.containers.find(({ id }) => id === containerId)?.name;
    if (pod === undefined || container === undefined) return false;
    oomKills.add(podUid, container);
    runtime?.killedForMemory?.(containerId);
    const why = isSystem ? "the node ran out of memory" : "its memory limit was reached";
    const message = `Container ${container}: the kernel killed process ${process} because ${why}`;
    journal.of(pod).event("Warning", "OOMKilling", { message, container });
    return true;
  }
}
