import { DAEMON_SETS, NODES, PODS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import { KeyedBackoff } from "../../lib/backoff.ts";
import type { Loop } from "../../lib/loop.ts";
import { ownValue } from "../../lib/own-value.ts";
import type { DaemonSet, Node, Pod } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { RecordEvent } from "../event-sink.ts";
import type { Informer } from "../informers.ts";
import { keyOf, partsOf } from "../object-index.ts";
import { claimObjects, wakeOwners } from "../owned-objects.ts";
import { PodControl } from "../pod-control.ts";
import { nextAvailableMs } from "../pod-state.ts";
import { type Outcome, Reconciler } from "../reconciler.ts";
import { hashOf, RevisionHistory } from "../revision-history.ts";
import { isSameStatus } from "../status-comparison.ts";
import { type DaemonFacts, daemonSetStatus, planDaemonSet } from "./daemon-plan.ts";
import { daemonTemplate, HASH_LABEL, nodeOf } from "./daemon-pod.ts";

/** Between deletions of failed pods of a node, as in Kubernetes. */
const FAILED_BACKOFF = { initialMs: 1000, maxMs: 15 * 60_000, resetAfterMs: 30 * 60_000 };

/** Keeps one pod of each DaemonSet on each node that it belongs on. */
export function daemonSetController(deps: ControllerDeps): Loop {
  const sets = new DaemonSets(deps);
  return { name: "daemon sets", run: (signal) => sets.run(signal) };
}

class DaemonSets {
  private readonly sets: Informer<DaemonSet>;
  private readonly pods: Informer<Pod>;
  private readonly nodes: Informer<Node>;
  private readonly history: RevisionHistory;
  private readonly record: RecordEvent;
  private readonly podControl: PodControl;
  private readonly failed = new KeyedBackoff<string>(FAILED_BACKOFF);
  private readonly reconciler: Reconciler;

  constructor(private readonly deps: ControllerDeps) {
    this.sets = deps.informers.of(DAEMON_SETS);
    this.pods = deps.informers.of(PODS);
    this.nodes = deps.informers.of(NODES);
    this.history = new RevisionHistory(deps);
    this.record = deps.events.recorder("daemonset-controller");
    this.podControl = new PodControl(deps, this.record);
    this.reconciler = new Reconciler(deps, {
      name: "daemon sets",
      reconcile: (key, options) => this.sync(key, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const wake = (key: string): void => this.reconciler.wake(key);
    const selectorOf = ({ spec }: DaemonSet) => spec.selector;
    wakeOwners({ objects: this.pods, owners: this.sets, kind: DAEMON_SETS.kind, selectorOf, wake }, { signal });
    this.nodes.onChange(
      (change) => {
        if (change.kind === "updated" && placement(change.object) === placement(change.previous)) return;
        for (const set of this.sets.list()) wake(keyOf(set));
      },
      { signal },
    );
    await this.reconciler.run(signal);
  }

  private async sync(key: string, options: Abortable): Promise<Outcome> {
    await Promise.all([
      ...[this.sets, this.pods, this.nodes].map((informer) => informer.synced(options)),
      this.history.synced(options),
    ]);
    const { namespace, name } = partsOf(key);
    const set = this.sets.get(namespace, name);
    if (set === undefined) return undefined;
    const owner = { resource: DAEMON_SETS, object: set };
    const claim = { api: this.deps.api, resource: PODS, informer: this.pods };
    const pods = await claimObjects(claim, { owner, selector: set.spec.selector }, options);
    const isDeleted = set.metadata.deletionTimestamp !== undefined;
    if (isDeleted) return undefined;
    const { update, all, collisionCount } = await this.history.sync(owner, options);
    const facts: DaemonFacts = {
      set,
      nodes: this.nodes.list(),
      pods,
      hash: hashOf(update),
      isDeleting: (pod) => this.pods.isDeleting(pod),
      nowMs: this.deps.clock.now().wall,
    };
    let waitMs: number | undefined;
    try {
      waitMs = await this.act(facts, options);
    } finally {
      await this.report(facts, collisionCount, options);
    }
    const live = new Set([facts.hash, ...pods.map(({ metadata }) => ownValue(metadata.labels, HASH_LABEL) ?? "")]);
    const limit = set.spec.revisionHistoryLimit ?? 10;
    await this.history.truncate(all, { limit, isLive: (revision) => live.has(hashOf(revision)) }, options);
    const waits = [waitMs, nextAvailableMs(pods, set.spec.minReadySeconds ?? 0, facts.nowMs)];
    const afterMs = Math.min(...waits.filter((ms): ms is number => ms !== undefined));
    return Number.isFinite(afterMs) ? { afterMs } : undefined;
  }

  /** Resolves with how long a failed pod has to wait for its deletion. */
  private async act(facts: DaemonFacts, options: Abortable): Promise<number | undefined> {
    const { set, hash } = facts;
    const owner = { resource: DAEMON_SETS, object: set };
    const { creations, deletions, ended } = planDaemonSet(facts);
    const now = this.deps.clock.now();
    const waits: number[] = [];
    for (const pod of ended) {
      const place = `${set.metadata.uid}/${nodeOf(pod)}`;
      const waitMs = pod.status?.phase === "Failed" ? this.failed.remaining(place, now) : 0;
      if (waitMs > 0) waits.push(waitMs);
      else {
        if (pod.status?.phase === "Failed") this.failed.next(place, now);
        this.reportEnd(set, pod);
        await this.podControl.delete(owner, pod, options);
      }
    }
    for (const pod of deletions) await this.podControl.delete(owner, pod, options);
    const podOf = (index: number) => ({ template: daemonTemplate(set, { nodeName: creations[index] ?? "", hash }) });
    await this.podControl.createMany(owner, { count: creations.length, podOf }, options);
    this.failed.evictOlderThan(FAILED_BACKOFF.resetAfterMs, now);
    return waits.length === 0 ? undefined : Math.min(...waits);
  }

  private reportEnd(set: DaemonSet, pod: Pod): void {
    const { namespace = "", name = "" } = pod.metadata;
    const where = `daemon pod ${namespace}/${name} on node ${nodeOf(pod)}, will try to`;
    const about = { resource: DAEMON_SETS, object: set };
    if (pod.status?.phase === "Failed") {
      this.record({ type: "Warning", reason: "FailedDaemonPod", message: `Found failed ${where} kill it`, ...about });
    } else {
      const message = `Found succeeded ${where} delete it`;
      this.record({ type: "Normal", reason: "SucceededDaemonPod", message, ...about });
    }
  }

  private async report(facts: DaemonFacts, collisionCount: number, options: Abortable): Promise<void> {
    const { set } = facts;
    const status = daemonSetStatus(facts, collisionCount);
    if (isSameStatus(set.status, status)) return;
    const { namespace = "", name = "" } = set.metadata;
    const change = { namespace, name, subresource: "status", object: { ...set, status } } as const;
    this.sets.wrote(await this.deps.api.update(DAEMON_SETS, change, options));
  }
}

/** What decides whether pods belong on a node. */
function placement({ metadata, spec }: Node): string {
  return JSON.stringify([metadata.labels, spec?.taints, spec?.unschedulable]);
}
