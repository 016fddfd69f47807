import type { Clock } from "../../lib/clock.ts";
import { containerHash } from "../../model/container-hash.ts";
import type { Pod, PodStatus } from "../../model/generated/types.ts";
import { CRASH_ANNOTATION } from "../../model/labels.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import { allContainers } from "../../model/pod-facts.ts";
import type { StartError } from "../../model/start-error.ts";
import type { PodIdentity } from "../../model/step.ts";
import { PreStopHooks } from "../execute/pre-stop-hooks.ts";
import type { PodJournal } from "../journal.ts";
import {
  afterRestart,
  type CrashLimits,
  type CrashState,
  crashKey,
  crashOf,
  parseCrash,
} from "../plan/crash-backoff.ts";
import { type ContainerStart, type PlanMemory, type PodPlan, RESTART_ALL, type StartHold } from "../plan/pod-plan.ts";
import { RESTARTING_ALL, type WaitingReason } from "../status/derive-container.ts";

interface MemoryDeps {
  readonly identity: PodIdentity;
  readonly journal: PodJournal;
  readonly clock: Clock;
  readonly crashLimits: CrashLimits;
}

/** What a worker remembers of its containers from one sync to the next. */
export class StartMemory implements PlanMemory {
  readonly crashes = new Map<string, CrashState>();
  readonly holds = new Map<string, StartHold>();
  readonly replacing = new Set<string>();
  /** The waiting state of containers that do not run. */
  readonly waiting = new Map<string, WaitingReason>();
  /** All containers were removed to be started again, and do not all exist yet. */
  restartingAll = false;
  /** Containers run outside the pod's cgroup: an earlier agent with other settings created them. */
  isMisplaced = false;
  /** The last sandbox could not be created. */
  hasNoSandbox = false;
  /** The last sandbox failed because the runtime's network was not ready. */
  isNetworkDown = false;
  readonly preStops = new PreStopHooks();
  /** Containers whose failure no status has shown yet: `ErrImagePull` comes before `ImagePullBackOff`. */
  private readonly unreported = new Set<string>();

  constructor(
    private readonly deps: MemoryDeps,
    known?: PodStatus,
  ) {
    this.restartingAll = isRestartingAll(known);
  }

  /** Restores the crash history that an earlier agent recorded on the containers. */
  adopt({ containers }: ObservedPod): void {
    for (const { name, annotations } of containers.toReversed()) {
      const crash = parseCrash(annotations[CRASH_ANNOTATION]);
      if (crash !== undefined) this.crashes.set(name, crash);
    }
  }

  /** Takes over why nothing of the pod is started; undefined if the reason before no longer holds. */
  refuse(pod: Pod, refusal: WaitingReason | undefined, before: WaitingReason | undefined): void {
    for (const { name } of allContainers(pod)) {
      if (refusal !== undefined) this.waiting.set(name, refusal);
      else if (this.waiting.get(name) === before) this.waiting.delete(name);
    }
  }

  /** Takes over what the plan waits for, for the status; a new wait is recorded in the journal. */
  noteWaits(plan: PodPlan): void {
    if (plan.kind !== "converge") return;
    const { journal, identity } = this.deps;
    for (const { container, reason, message } of plan.waits) {
      if (this.waiting.get(container)?.reason === reason || this.unreported.has(container)) continue;
      this.waiting.set(container, { reason, message });
      journal.note("backoff", message, container);
      if (reason !== "CrashLoopBackOff") continue;
      const pod = `${identity.name}_${identity.namespace}(${identity.uid})`;
      const text = `Back-off restarting failed container ${container} in pod ${pod}`;
      journal.event("Warning", "BackOff", { message: text, container });
    }
  }

  /** Called once a status has shown every failure. True if there was one: the wait that follows from it is shown next. */
  takeUnreported(): boolean {
    const hadSome = this.unreported.size > 0;
    this.unreported.clear();
    return hadSome;
  }

  /** Returns the crash history that a container starts with. */
  crashAfter(pod: Pod, start: ContainerStart): CrashState | undefined {
    const container = allContainers(pod).find(({ name }) => name === start.name);
    const before = container && crashOf(this.crashes, container);
    if (container === undefined || start.previousEnd === undefined) return before;
    const times = { finishedAt: start.previousEnd, wallNow: this.deps.clock.now().wall };
    return { ...afterRestart(before, times, this.deps.crashLimits), key: crashKey(container) };
  }

  /** A container has started: nothing is waited for any more. */
  started(name: string): void {
    this.holds.delete(name);
    this.replacing.delete(name);
    this.waiting.delete(name);
  }

  /** A start failed; it is not tried again before the time that the error names, as long as the container is the same. */
  failed(pod: Pod, name: string, error: StartError): void {
    const container = allContainers(pod).find((one) => one.name === name);
    this.waiting.set(name, { reason: error.reason, message: error.message });
    this.unreported.add(name);
    // From here on its restart policy decides, as in Kubernetes.
    this.replacing.delete(name);
    this.holds.set(name, {
      untilMono: this.deps.clock.now().mono + error.retry.afterMs,
      hash: container === undefined ? "" : containerHash(container),
      reason: error.retry.reason ?? error.reason,
      message: error.retry.message ?? error.message,
    });
  }

  /** Begins a restart of all containers: until each runs again, their absence means nothing. */
  beginRestartAll(pod: Pod, triggers: readonly ObservedContainer[]): void {
    const finishedAt = Math.max(...triggers.map((trigger) => trigger.finishedAt));
    const times = { finishedAt, wallNow: this.deps.clock.now().wall };
    this.crashes.set(RESTART_ALL, afterRestart(this.crashes.get(RESTART_ALL), times, this.deps.crashLimits));
    this.restartingAll = true;
    for (const { name } of [...pod.spec.containers, ...(pod.spec.initContainers ?? [])])
      this.waiting.set(name, RESTARTING_ALL);
    this.deps.journal.note(
      "backoff",
      `restarting all containers, triggered by: ${triggers.map(({ name }) => name).join(", ")}`,
    );
  }
}

function isRestartingAll(known: PodStatus | undefined): boolean {
  return (
    known?.conditions?.some(({ type, status }) => type === "AllContainersRestarting" && status === "True") === true
  );
}
