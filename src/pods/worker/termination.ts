import { messageOf } from "../../lib/errors.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { isStaticPod } from "../../model/pod-facts.ts";
import type { PodRun } from "../execute/context.ts";
import { removeContainer, removeWrittenFiles } from "../execute/remove.ts";
import { planTermination, type TerminationStage } from "../plan/termination.ts";
import { podRun, type WorkerParts } from "./parts.ts";
import { performTermination } from "./termination-actions.ts";

/** Ends a pod by the plan of its termination. */
export class PodTermination {
  /** What was read after the kill, for a removal that follows at once. */
  private left: ObservedPod | undefined;

  constructor(private readonly parts: WorkerParts) {}

  /** Kills all that runs and cleans up. Answers how long to wait before it may be tried; 0 if it is done. */
  async stop(interrupt: AbortSignal): Promise<number> {
    const waitMs = this.waitMs();
    if (waitMs > 0) return waitMs;
    const { deps, identity, report, life } = this.parts;
    const observed = await deps.observer.read(identity, { signal: interrupt });
    const { stop = { graceSeconds: 1 } } = life();
    const { graceSeconds } = stop;
    await this.parts.stops.save(stop, { signal: interrupt });
    const run = podRun(this.parts, observed, interrupt);
    this.publish(observed, { finished: false });
    const step = run.journal.begin("terminate", { detail: describeGrace(graceSeconds) });
    try {
      const after = await this.kill(run, observed, graceSeconds);
      await this.perform("release", run, { observed: after, graceSeconds: 0 });
      this.publish(after, { finished: true });
      this.parts.killed();
      await this.perform("cleanUp", run, { observed: after, graceSeconds: 0 });
      // It runs again with the next agent, as in Kubernetes.
      if (isStaticPod(run.pod)) await this.parts.stops.remove();
      step.done(report.current?.phase ?? "");
      this.left = life().isWanted ? undefined : after;
    } catch (error) {
      if (interrupt.aborted) step.abort("superseded by a shorter grace period");
      else step.fail(error);
      throw error;
    }
    if (life().isWanted) run.journal.note("finished", report.current?.phase ?? "");
    return 0;
  }

  /** Removes all that is left of a stopped pod. Answers how long to wait before it may be tried; 0 if it is done. */
  async remove(interrupt: AbortSignal): Promise<number> {
    const waitMs = this.waitMs();
    if (waitMs > 0) return waitMs;
    const { deps, identity } = this.parts;
    const observed = this.left ?? (await deps.observer.read(identity, { signal: interrupt }));
    this.left = undefined;
    const run = podRun(this.parts, observed, interrupt);
    const step = run.journal.begin("remove");
    try {
      await this.perform("remove", run, { observed, graceSeconds: 0 });
      step.done("everything of the pod is removed");
    } catch (error) {
      step.fail(error);
      throw error;
    }
    return 0;
  }

  /** Removes what a stopped pod was asked to give up, with its logs; its status stays. Nothing to do in most cases. */
  async discard(interrupt: AbortSignal): Promise<undefined> {
    const { deps, identity, discards } = this.parts;
    if (discards.isEmpty) return;
    const options = { signal: interrupt };
    const observed = await deps.observer.read(identity, options);
    for (const container of observed.containers) {
      if (!discards.has(container.id)) continue;
      await removeContainer(deps.execute, { pod: identity, container }, options);
    }
    const emptied = discards.isAll ? observed.sandboxes : [];
    for (const { id } of emptied) await deps.execute.runtime.removeSandbox(id, options);
    // Their space is what is missing, and the pod's directory stays as long as its object.
    if (discards.isAll) await removeWrittenFiles(deps.execute, identity.uid);
    await deps.observer.read(identity, options);
    discards.done();
  }

  private waitMs(): number {
    const { retry, deps } = this.parts;
    const waitMs = retry.waitMs(deps.clock.now().mono);
    if (waitMs <= 0) retry.unblock();
    return Math.max(0, waitMs);
  }

  private async kill(run: PodRun, observed: ObservedPod, graceSeconds: number): Promise<ObservedPod> {
    const { deps, identity } = this.parts;
    try {
      await this.perform("kill", run, { observed, graceSeconds });
    } catch (error) {
      if (!run.interrupt.aborted) {
        run.journal.event("Warning", "FailedKillPod", `error killing pod: ${messageOf(error)}`);
      }
      throw error;
    }
    const after = await deps.observer.read(identity, { signal: run.interrupt });
    const alive = after.containers.filter((container) => container.state === "running");
    if (alive.length > 0)
      throw new Error(`containers still run after kill: ${alive.map(({ name }) => name).join(", ")}`);
    return after;
  }

  /** A grace period of 0 cannot be shortened: such a stage is not interrupted. */
  private async perform(
    stage: TerminationStage,
    run: PodRun,
    { observed, graceSeconds }: { observed: ObservedPod; graceSeconds: number },
  ): Promise<void> {
    const { isWanted, keepLogs } = this.parts.life();
    const actions = planTermination(stage, run.pod, { observed, graceSeconds, isWanted, keepLogs });
    const begin = this.parts.running.begin.bind(this.parts.running);
    await performTermination(this.parts.deps.execute, run, {
      actions,
      begin: (action) => begin({ action, pod: run.pod, graceSeconds }),
    });
  }

  /** An orphaned pod has no status: nobody would read it. */
  private publish(observed: ObservedPod, { finished }: { finished: boolean }): void {
    const { options, report, life, pod } = this.parts;
    if (options.orphan === true) return;
    report.update(pod(), observed, { terminating: true, finished, failure: life().stop?.failure });
  }
}

function describeGrace(seconds: number): string {
  return Number.isFinite(seconds) ? `grace ${seconds}s` : "grace of each container";
}
