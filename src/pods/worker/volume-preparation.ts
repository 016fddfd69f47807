import { AbortScope } from "../../lib/abort.ts";
import type { PodRun, VolumeProvider } from "../execute/context.ts";

/**
 * Prepares a pod's volumes during one run of actions. Containers wait for them; the sandbox does not if everything that
 * they are made from is available. A pod whose volumes cannot be mounted yet gets no sandbox and no IP, as in Kubernetes.
 */
export class VolumePreparation {
  private readonly scope: AbortScope;
  private preparation: Promise<void> | undefined;
  private isDone = false;

  constructor(
    private readonly volumes: VolumeProvider,
    private readonly run: PodRun,
  ) {
    this.scope = new AbortScope([run.interrupt]);
  }

  /** Begins to prepare the volumes and resolves once the sandbox may be created. */
  async beforeSandbox(): Promise<void> {
    if ((this.run.pod.spec.volumes ?? []).length === 0) return;
    const prepared = this.begin();
    const isAtHand = this.volumes.isAtHand(this.run.pod, this.scope);
    const first = await Promise.race([prepared.then(() => true), isAtHand]);
    if (!first) await prepared;
  }

  /** Resolves once all volumes are ready. Other pods may start meanwhile. */
  async beforeContainers(): Promise<void> {
    if (this.isDone || (this.run.pod.spec.volumes ?? []).length === 0) return;
    const prepared = this.begin();
    this.run.slot.release();
    await prepared;
  }

  /** Aborts what is not ready, and resolves once nothing is under way any more. */
  async end(): Promise<void> {
    this.scope.abort();
    await this.preparation?.catch(() => undefined);
    this.scope.dispose();
  }

  private begin(): Promise<void> {
    if (this.preparation === undefined) {
      this.preparation = this.prepare();
      // Whoever waits for it gets its failure; if nobody does, the run has failed for another reason.
      this.preparation.catch(() => undefined);
    }
    return this.preparation;
  }

  private async prepare(): Promise<void> {
    const { run, volumes } = this;
    const { signal } = this.scope;
    const names = (run.pod.spec.volumes ?? []).map((volume) => volume.name).join(", ");
    const step = run.journal.begin("volumes", { detail: names });
    // The volumes record the events of failed mounts; a wait that timed out has none, as in Kubernetes.
    const onWait = (detail: string): void => step.detail(detail || names);
    try {
      await volumes.prepare(run.pod, { signal, onWait });
      this.isDone = true;
      step.done(names);
    } catch (error) {
      if (signal.aborted) step.abort();
      else step.fail(error);
      throw error;
    }
  }
}
