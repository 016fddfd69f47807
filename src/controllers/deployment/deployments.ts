import { ApiError, DEPLOYMENTS, PODS, REPLICA_SETS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Loop } from "../../lib/loop.ts";
import { ownValue } from "../../lib/own-value.ts";
import type { Deployment, DeploymentStatus, Pod, ReplicaSet } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { RecordEvent } from "../event-sink.ts";
import type { Informer } from "../informers.ts";
import { partsOf } from "../object-index.ts";
import { claimObjects, wakeOwners } from "../owned-objects.ts";
import { isTerminal } from "../pod-state.ts";
import { type Outcome, Reconciler } from "../reconciler.ts";
import { isSameStatus } from "../status-comparison.ts";
import { timeText } from "../time-text.ts";
import { active, isRollingUpdate, sizeOf, wantedReplicas } from "./replica-counts.ts";
import { ReplicaSetRevisions, type RolloutDraft } from "./replica-set-revisions.ts";
import { REVISION_ANNOTATION } from "./revisions.ts";
import { type DeploymentSets, isScaling, planRolling, planScaling } from "./rolling-plan.ts";
import {
  countedStatus,
  isComplete,
  type Now,
  pauseConditions,
  progressCheckMs,
  rolloutStatus,
} from "./rollout-status.ts";

/** Rolls each Deployment out as ReplicaSets. */
export function deploymentController(deps: ControllerDeps): Loop {
  const deployments = new Deployments(deps);
  return { name: "deployments", run: (signal) => deployments.run(signal) };
}

class Deployments {
  private readonly deployments: Informer<Deployment>;
  private readonly sets: Informer<ReplicaSet>;
  private readonly pods: Informer<Pod>;
  private readonly record: RecordEvent;
  private readonly revisions: ReplicaSetRevisions;
  private readonly reconciler: Reconciler;

  constructor(private readonly deps: ControllerDeps) {
    this.deployments = deps.informers.of(DEPLOYMENTS);
    this.sets = deps.informers.of(REPLICA_SETS);
    this.pods = deps.informers.of(PODS);
    this.record = deps.events.recorder("deployment-controller");
    this.revisions = new ReplicaSetRevisions(deps, this.record);
    this.reconciler = new Reconciler(deps, {
      name: "deployments",
      reconcile: (key, options) => this.sync(key, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const wake = (key: string): void => this.reconciler.wake(key);
    const selectorOf = ({ spec }: Deployment) => spec.selector;
    const { kind } = DEPLOYMENTS;
    wakeOwners({ objects: this.sets, owners: this.deployments, kind, selectorOf, wake }, { signal });
    await this.reconciler.run(signal);
  }

  private async sync(key: string, options: Abortable): Promise<Outcome> {
    await Promise.all([this.deployments.synced(options), this.sets.synced(options), this.pods.synced(options)]);
    const { namespace, name } = partsOf(key);
    const deployment = this.deployments.get(namespace, name);
    if (deployment === undefined) return undefined;
    const { selector } = deployment.spec;
    if (Object.keys(selector).length === 0) return this.rejectSelector(deployment);
    const claim = { api: this.deps.api, resource: REPLICA_SETS, informer: this.sets };
    const owner = { resource: DEPLOYMENTS, object: deployment };
    const sets = await claimObjects(claim, { owner, selector }, options);
    const ms = this.deps.clock.now().wall;
    const now: Now = { ms, text: timeText(ms) };
    if (deployment.metadata.deletionTimestamp !== undefined) {
      const known = this.revisions.split(deployment, sets);
      await this.write(deployment, { deployment }, { status: countedStatus(deployment, known, now), options });
      return undefined;
    }
    const draft: RolloutDraft = {
      deployment: { ...deployment, status: { ...deployment.status, conditions: pauseConditions(deployment, now) } },
    };
    try {
      const status = await this.rollOut(draft, sets, { now, ...options });
      await this.write(deployment, draft, { status, options });
      const afterMs = progressCheckMs(deployment, status, now);
      return afterMs === undefined ? undefined : { afterMs };
    } catch (error) {
      // What the attempt found out, such as a collision of names or why a set cannot be created, is kept.
      const { status = {} } = draft.deployment;
      if (error instanceof ApiError && error.code !== "Conflict")
        await this.write(deployment, draft, { status, options });
      throw error;
    }
  }

  /** One step; resolves with the status after it. */
  private async rollOut(
    draft: RolloutDraft,
    sets: readonly ReplicaSet[],
    options: Abortable & { readonly now: Now },
  ): Promise<DeploymentStatus> {
    const { now } = options;
    const known = await this.revisions.update(draft, sets, options);
    const { spec } = draft.deployment;
    if (spec.paused === true || isScaling(draft.deployment, allOf(known))) {
      const resized = await this.revisions.resize(draft, known, {
        plan: planScaling(draft.deployment, known),
        ...options,
      });
      if (spec.paused === true) await this.revisions.expire(draft, resized.oldSets, options);
      return countedStatus(draft.deployment, resized, now);
    }
    const rolled = isRollingUpdate(draft.deployment)
      ? await this.roll(draft, known, options)
      : await this.recreate(draft, known, options);
    const status = rolloutStatus(draft.deployment, rolled.sets, now);
    if (rolled.isSettled && isComplete(draft.deployment, status)) {
      await this.revisions.expire(draft, rolled.sets.oldSets, options);
    }
    return status;
  }

  private async roll(draft: RolloutDraft, known: DeploymentSets, options: Abortable & { readonly now: Now }) {
    const newSet = known.newSet ?? (await this.revisions.create(draft, known, options));
    const sets = { ...known, newSet };
    const plan = planRolling(draft.deployment, newSet, known.oldSets);
    return { sets: await this.revisions.resize(draft, sets, { plan, ...options }), isSettled: plan.length === 0 };
  }

  /** Old pods end before new ones begin. */
  private async recreate(draft: RolloutDraft, known: DeploymentSets, options: Abortable & { readonly now: Now }) {
    const down = active(known.oldSets).map((set) => ({ set, size: 0 }));
    if (down.length > 0) {
      return { sets: await this.revisions.resize(draft, known, { plan: down, ...options }), isSettled: false };
    }
    if (known.oldSets.some((set) => this.hasPods(set))) return { sets: known, isSettled: false };
    const newSet = known.newSet ?? (await this.revisions.create(draft, known, options));
    const sets = { ...known, newSet };
    const wanted = wantedReplicas(draft.deployment);
    const plan = sizeOf(newSet) === wanted ? [] : [{ set: newSet, size: wanted }];
    return { sets: await this.revisions.resize(draft, sets, { plan, ...options }), isSettled: plan.length === 0 };
  }

  private hasPods({ metadata, status }: ReplicaSet): boolean {
    const pods = this.pods.ownedBy(metadata.uid ?? "");
    return (status?.replicas ?? 0) > 0 || pods.some((pod) => !isTerminal(pod));
  }

  private rejectSelector(deployment: Deployment): undefined {
    const message = "This deployment is selecting all pods. A non-empty selector is required.";
    this.record({ type: "Warning", reason: "SelectingAll", message, resource: DEPLOYMENTS, object: deployment });
    return undefined;
  }

  /** Writes status and revision, if they differ. */
  private async write(
    stored: Deployment,
    { revision, deployment }: RolloutDraft,
    { status, options }: { readonly status: DeploymentStatus; readonly options: Abortable },
  ): Promise<void> {
    const { metadata } = stored;
    const isNew = revision !== undefined && ownValue(metadata.annotations, REVISION_ANNOTATION) !== revision;
    const { collisionCount } = deployment.status ?? {};
    const next = { ...status, ...(collisionCount !== undefined && { collisionCount }) };
    if (!isNew && isSameStatus(stored.status, next)) return;
    const annotations = { ...metadata.annotations, ...(revision !== undefined && { [REVISION_ANNOTATION]: revision }) };
    const object: Deployment = { ...stored, metadata: { ...metadata, annotations }, status: next };
    const { namespace = "", name = "" } = metadata;
    const change = { namespace, name, subresource: "status", object } as const;
    this.deployments.wrote(await this.deps.api.update(DEPLOYMENTS, change, options));
  }
}

function allOf({ newSet, oldSets }: DeploymentSets): readonly ReplicaSet[] {
  return [...oldSets, ...(newSet ? [newSet] : [])];
}
