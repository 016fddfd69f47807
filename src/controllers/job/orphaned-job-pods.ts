import { JOBS, PODS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Job, Pod } from "../../model/generated/types.ts";
import { isConditionTrue } from "../conditions.ts";
import type { ControllerDeps } from "../controller.ts";
import type { Informer } from "../informers.ts";
import { controllerOf, keyOf, partsOf } from "../object-index.ts";
import { Reconciler } from "../reconciler.ts";
import { isTracked } from "./job-pods.ts";
import type { JobTracking } from "./job-tracking.ts";

/** Releases pods that wait to be counted by a job that is gone or has ended. */
export class OrphanedJobPods {
  private readonly jobs: Informer<Job>;
  private readonly pods: Informer<Pod>;
  private readonly reconciler: Reconciler;

  constructor(
    deps: ControllerDeps,
    private readonly tracking: Pick<JobTracking, "release">,
  ) {
    this.jobs = deps.informers.of(JOBS);
    this.pods = deps.informers.of(PODS);
    this.reconciler = new Reconciler(deps, {
      name: "orphaned pods of jobs",
      reconcile: (key, options) => this.release(key, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    this.pods.onChange(
      ({ kind, object }) => {
        if (kind !== "deleted" && isTracked(object) && this.isOrphan(object)) this.reconciler.wake(keyOf(object));
      },
      { signal },
    );
    this.jobs.onChange(
      ({ kind, object }) => {
        if (kind !== "deleted" && !isOver(object)) return;
        for (const pod of this.pods.ownedBy(object.metadata.uid ?? ""))
          if (isTracked(pod)) this.reconciler.wake(keyOf(pod));
      },
      { signal },
    );
    await this.reconciler.run(signal);
  }

  private async release(key: string, options: Abortable): Promise<undefined> {
    await Promise.all([this.jobs.synced(options), this.pods.synced(options)]);
    const { namespace, name } = partsOf(key);
    const pod = this.pods.get(namespace, name);
    if (pod !== undefined && isTracked(pod) && this.isOrphan(pod)) await this.tracking.release(pod, options);
    return undefined;
  }

  private isOrphan(pod: Pod): boolean {
    const reference = controllerOf(pod);
    if (reference === undefined) return true;
    if (reference.kind !== JOBS.kind) return false;
    const job = this.jobs.get(pod.metadata.namespace ?? "", reference.name);
    return job?.metadata.uid !== reference.uid || isOver(job);
  }
}

function isOver({ status }: Job): boolean {
  return isConditionTrue(status?.conditions, "Complete") || isConditionTrue(status?.conditions, "Failed");
}
