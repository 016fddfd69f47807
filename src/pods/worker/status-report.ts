import type { Clock } from "../../lib/clock.ts";
import type { Pod, PodStatus } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";
import type { PodIdentity } from "../../model/step.ts";
import type { NodeFacts, ResourceHealthProvider } from "../execute/context.ts";
import { derivePodStatus, isTerminalPhase, type StatusFailure } from "../status/derive.ts";
import { withProbeFlags, withReadyToStart, withWaitMessage } from "../status/derive-flags.ts";
import { withHeldPhase } from "../status/held-phase.ts";
import type { PodProbes } from "./probes.ts";
import type { PodResize } from "./resize.ts";
import type { StartMemory } from "./start-memory.ts";

interface ReportDeps {
  readonly identity: PodIdentity;
  readonly memory: StartMemory;
  readonly resize: PodResize;
  readonly probes: Pick<PodProbes, "results">;
  readonly node: Pick<NodeFacts, "runtimeName" | "hostIps" | "hasRecursiveReadOnly" | "showsVolumeImages">;
  readonly health: readonly ResourceHealthProvider[];
  readonly clock: Clock;
  /** True while the pod has something of the node that others must not get yet. */
  isHeld(): boolean;
  publish(uid: string, status: PodStatus): void;
}

/** How far the pod's end is, and why it ends. */
export interface StatusStage {
  readonly terminating?: boolean;
  readonly finished?: boolean;
  readonly failure?: StatusFailure | undefined;
}

/** Derives the status of one pod and publishes it. */
export class StatusReport {
  /** What was published last: `current`, but for a phase that is held back. */
  private shown: PodStatus | undefined;

  constructor(
    private readonly deps: ReportDeps,
    /** What was derived last, or known before this agent began. */
    public current: PodStatus | undefined,
  ) {
    this.shown = current;
  }

  /** Publishes the status that follows from an observation. */
  update(pod: Pod, observed: ObservedPod, stage: StatusStage): void {
    const { memory, resize, node, clock, probes, identity, health } = this.deps;
    const status = derivePodStatus({
      pod: resize.view(pod),
      observed,
      previous: this.current,
      waiting: memory.waiting,
      probes: probes.results(identity.uid),
      runtimeName: node.runtimeName,
      hostIps: node.hostIps,
      now: clock.now().wall,
      terminating: stage.terminating === true,
      finished: stage.finished === true,
      restartingAll: memory.restartingAll,
      hasRecursiveReadOnly: node.hasRecursiveReadOnly(pod),
      showsVolumeImages: node.showsVolumeImages === true,
      actualOf: (container) => resize.actualOf(container),
      actualPod: resize.actualPod,
      healthOf: (container) => health.flatMap((provider) => provider.healthOf(pod, container)),
      resizePending: resize.pending,
      resizing: resize.isInProgress ? { error: resize.error } : undefined,
      ...(stage.failure && { failure: stage.failure }),
    });
    // A container that was killed to be replaced is about to start: its end is not the end of the pod.
    const isPremature = memory.replacing.size > 0 && stage.terminating !== true && isTerminalPhase(status.phase);
    if (!isPremature) this.publish(status);
  }

  /** Publishes the ready and started flags that follow from new probe results, if they changed. */
  probed(pod: Pod): void {
    const { probes, identity, clock } = this.deps;
    if (this.current === undefined) return;
    const results = probes.results(identity.uid);
    const status = withProbeFlags(this.current, { pod, probes: results, now: clock.now().wall });
    if (status !== this.current) this.publish(status);
  }

  /** Publishes that sandbox, network and volumes are ready, if the last status did not say so. */
  readyToStart(): void {
    if (this.current === undefined) return;
    const status = withReadyToStart(this.current, this.deps.clock.now().wall);
    if (status !== this.current) this.publish(status);
  }

  /** Publishes what the start of a container waits for, or that it no longer does, if it shows as being created. */
  startWaits(container: string, message: string | undefined): void {
    if (this.current === undefined) return;
    const status = withWaitMessage(this.current, container, message);
    if (status !== this.current) this.publish(status);
  }

  private publish(status: PodStatus): void {
    this.current = status;
    this.shown = this.deps.isHeld() ? withHeldPhase(status, this.shown) : status;
    this.deps.publish(this.deps.identity.uid, this.shown);
  }
}
