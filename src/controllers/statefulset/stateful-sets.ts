import { PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Loop } from "../../lib/loop.ts";
import type { PersistentVolumeClaim, Pod, StatefulSet } from "../../model/generated/types.ts";
import { matchesLabels } from "../../model/label-selector.ts";
import type { ControllerDeps } from "../controller.ts";
import type { Informer } from "../informers.ts";
import { keyOf, partsOf } from "../object-index.ts";
import { claimObjects, wakeOwners } from "../owned-objects.ts";
import { nextAvailableMs } from "../pod-state.ts";
import { type Outcome, Reconciler } from "../reconciler.ts";
import { RevisionHistory, type Revisions, templateOf } from "../revision-history.ts";
import { isSameStatus } from "../status-comparison.ts";
import { ordinalOf } from "./ordinals.ts";
import {
  planStatefulSet,
  revisionOf,
  type StatefulAction,
  type StatefulFacts,
  statefulSetStatus,
} from "./stateful-plan.ts";
import { StatefulPods } from "./stateful-pods.ts";

/** Keeps the numbered pods of each StatefulSet, with claims of their own. */
export function statefulSetController(deps: ControllerDeps): Loop {
  const sets = new StatefulSets(deps);
  return { name: "stateful sets", run: (signal) => sets.run(signal) };
}

class StatefulSets {
  private readonly sets: Informer<StatefulSet>;
  private readonly pods: Informer<Pod>;
  private readonly claims: Informer<PersistentVolumeClaim>;
  private readonly history: RevisionHistory;
  private readonly control: StatefulPods;
  private readonly reconciler: Reconciler;

  constructor(private readonly deps: ControllerDeps) {
    this.sets = deps.informers.of(STATEFUL_SETS);
    this.pods = deps.informers.of(PODS);
    this.claims = deps.informers.of(PERSISTENT_VOLUME_CLAIMS);
    this.history = new RevisionHistory(deps);
    this.control = new StatefulPods(deps, deps.events.recorder("statefulset-controller"));
    this.reconciler = new Reconciler(deps, {
      name: "stateful sets",
      reconcile: (key, options) => this.sync(key, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const wake = (key: string): void => this.reconciler.wake(key);
    const selectorOf = ({ spec }: StatefulSet) => spec.selector;
    wakeOwners({ objects: this.pods, owners: this.sets, kind: STATEFUL_SETS.kind, selectorOf, wake }, { signal });
    // A claim that goes with a former pod keeps the next one of its name from being created.
    this.claims.onChange(
      ({ kind, object }) => {
        if (kind !== "deleted") return;
        for (const set of this.sets.list(object.metadata.namespace ?? "")) {
          if (matchesLabels(set.spec.selector, object.metadata.labels)) wake(keyOf(set));
        }
      },
      { signal },
    );
    await this.reconciler.run(signal);
  }

  private async sync(key: string, options: Abortable): Promise<Outcome> {
    await Promise.all([
      ...[this.sets, this.pods, this.claims].map((informer) => informer.synced(options)),
      this.history.synced(options),
    ]);
    const { namespace, name } = partsOf(key);
    const set = this.sets.get(namespace, name);
    if (set === undefined) return undefined;
    const owner = { resource: STATEFUL_SETS, object: set };
    const claim = { api: this.deps.api, resource: PODS, informer: this.pods };
    // One of another name is none of the set's: adopted, it would be deleted with it.
    const isMember = (pod: Pod): boolean => ordinalOf(pod, set) !== undefined;
    const pods = await claimObjects(claim, { owner, selector: set.spec.selector, isMember }, options);
    const revisions = await this.history.sync(owner, options);
    const facts: StatefulFacts = {
      set,
      pods,
      updateRevision: revisions.update.metadata.name ?? "",
      isDeleting: (pod) => this.pods.isDeleting(pod),
      nowMs: this.deps.clock.now().wall,
    };
    try {
      if (set.metadata.deletionTimestamp === undefined) await this.retainAll(facts, options);
      for (const action of planStatefulSet(facts)) await this.act(set, { action, revisions }, options);
    } finally {
      await this.report(facts, revisions, options);
    }
    const live = new Set([facts.updateRevision, set.status?.currentRevision ?? "", ...pods.map(revisionOf)]);
    const isLive = ({ metadata }: { readonly metadata: { readonly name?: string } }) => live.has(metadata.name ?? "");
    const limit = set.spec.revisionHistoryLimit ?? 10;
    await this.history.truncate(revisions.all, { limit, isLive }, options);
    const afterMs = nextAvailableMs(pods, set.spec.minReadySeconds ?? 0, facts.nowMs);
    return afterMs === undefined ? undefined : { afterMs };
  }

  private async retainAll({ set, pods }: StatefulFacts, options: Abortable): Promise<void> {
    for (const pod of pods) {
      const ordinal = ordinalOf(pod, set);
      if (ordinal !== undefined) await this.control.retain(set, { pod, ordinal }, options);
    }
  }

  private async act(
    set: StatefulSet,
    { action, revisions }: { readonly action: StatefulAction; readonly revisions: Revisions },
    options: Abortable,
  ): Promise<void> {
    switch (action.kind) {
      case "create": {
        const current = revisions.all.find(({ metadata }) => metadata.name === set.status?.currentRevision);
        const used = action.revision === "current" ? (current ?? revisions.update) : revisions.update;
        const template = used === revisions.update ? set.spec.template : templateOf(used);
        const made = { ordinal: action.ordinal, template, revision: used.metadata.name ?? "" };
        return this.control.create(set, made, options);
      }
      case "delete":
        return this.control.delete(set, action.pod, options);
      case "provide":
        return this.control.provide(set, action.ordinal, options);
      case "identify":
        return this.control.identify(set, action, options);
    }
  }

  private async report(facts: StatefulFacts, { update, all, collisionCount }: Revisions, options: Abortable) {
    const { set } = facts;
    const { namespace = "", name = "" } = set.metadata;
    const known = all.find(({ metadata }) => metadata.name === set.status?.currentRevision) ?? update;
    const currentRevision = known.metadata.name ?? "";
    const status = statefulSetStatus({ ...facts, currentRevision, collisionCount });
    if (isSameStatus(set.status, status)) return;
    const change = { namespace, name, subresource: "status", object: { ...set, status } } as const;
    this.sets.wrote(await this.deps.api.update(STATEFUL_SETS, change, options));
  }
}
