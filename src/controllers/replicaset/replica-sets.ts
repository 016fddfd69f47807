import { ApiError, PODS, REPLICA_SETS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Loop } from "../../lib/loop.ts";
import type { Pod, ReplicaSet } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { Informer } from "../informers.ts";
import { partsOf } from "../object-index.ts";
import { claimObjects, wakeOwners } from "../owned-objects.ts";
import { PodControl } from "../pod-control.ts";
import { isTerminal, nextAvailableMs } from "../pod-state.ts";
import { type Outcome, Reconciler } from "../reconciler.ts";
import { isSameStatus } from "../status-comparison.ts";
import { timeText } from "../time-text.ts";
import { replicaSetStatus } from "./replica-set-status.ts";
import { deletionOrder } from "./scale-down.ts";

/** Pods that are created or deleted at once, as in Kubernetes. */
const BURST = 500;

/** Keeps as many pods of a template as each ReplicaSet asks for. */
export function replicaSetController(deps: ControllerDeps): Loop {
  const sets = new ReplicaSets(deps);
  return { name: "replica sets", run: (signal) => sets.run(signal) };
}

class ReplicaSets {
  private readonly sets: Informer<ReplicaSet>;
  private readonly pods: Informer<Pod>;
  private readonly podControl: PodControl;
  private readonly reconciler: Reconciler;

  constructor(private readonly deps: ControllerDeps) {
    this.sets = deps.informers.of(REPLICA_SETS);
    this.pods = deps.informers.of(PODS);
    this.podControl = new PodControl(deps, deps.events.recorder("replicaset-controller"));
    this.reconciler = new Reconciler(deps, {
      name: "replica sets",
      reconcile: (key, options) => this.sync(key, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const wake = (key: string): void => this.reconciler.wake(key);
    const selectorOf = ({ spec }: ReplicaSet) => spec.selector;
    wakeOwners({ objects: this.pods, owners: this.sets, kind: REPLICA_SETS.kind, selectorOf, wake }, { signal });
    await this.reconciler.run(signal);
  }

  private async sync(key: string, options: Abortable): Promise<Outcome> {
    await Promise.all([this.sets.synced(options), this.pods.synced(options)]);
    const { namespace, name } = partsOf(key);
    const set = this.sets.get(namespace, name);
    if (set === undefined) return undefined;
    const owner = { resource: REPLICA_SETS, object: set };
    const claim = { api: this.deps.api, resource: PODS, informer: this.pods };
    const living = (await claimObjects(claim, { owner, selector: set.spec.selector }, options)).filter(
      (pod) => !isTerminal(pod),
    );
    const active = living.filter((pod) => !this.pods.isDeleting(pod));
    const terminating = living.filter((pod) => this.pods.isDeleting(pod));
    const failure = set.metadata.deletionTimestamp === undefined ? await this.resize(set, active, options) : undefined;
    const minReady = set.spec.minReadySeconds ?? 0;
    const nowMs = this.deps.clock.now().wall;
    const facts = { active, terminating, failure: failure?.message, nowMs, now: timeText(nowMs) };
    const status = replicaSetStatus(set, facts);
    if (!isSameStatus(set.status, status)) {
      const update = { namespace, name, subresource: "status", object: { ...set, status } } as const;
      this.sets.wrote(await this.deps.api.update(REPLICA_SETS, update, options));
    }
    if (failure !== undefined) throw failure;
    const afterMs = nextAvailableMs(active, minReady, nowMs);
    return afterMs === undefined ? undefined : { afterMs };
  }

  /** Creates or deletes pods; resolves with what went wrong. */
  private async resize(set: ReplicaSet, active: readonly Pod[], options: Abortable): Promise<ApiError | undefined> {
    const owner = { resource: REPLICA_SETS, object: set };
    const difference = active.length - (set.spec.replicas ?? 1);
    try {
      if (difference < 0) {
        const template = set.spec.template ?? {};
        const count = Math.min(-difference, BURST);
        await this.podControl.createMany(owner, { count, podOf: () => ({ template }) }, options);
      } else if (difference > 0) {
        const victims = deletionOrder(active, this.deps.clock.now().wall).slice(0, Math.min(difference, BURST));
        await this.podControl.deleteMany(owner, victims, options);
      }
      return undefined;
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  }
}
