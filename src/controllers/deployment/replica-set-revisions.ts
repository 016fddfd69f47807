import { isDeepStrictEqual } from "node:util";
import { ApiError, DEPLOYMENTS, REPLICA_SETS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Deployment, ReplicaSet } from "../../model/generated/types.ts";
import { conditionOf, withCondition } from "../conditions.ts";
import type { ControllerDeps } from "../controller.ts";
import type { RecordEvent } from "../event-sink.ts";
import type { Informer } from "../informers.ts";
import { controllerReference } from "../owned-objects.ts";
import { isNamespaceTerminating } from "../pod-control.ts";
import { hashName } from "../template-hash.ts";
import { DESIRED_ANNOTATION, MAX_ANNOTATION, maxSurge, sizeOf, sum, wantedReplicas } from "./replica-counts.ts";
import {
  expiredSets,
  findNewSet,
  HASH_LABEL,
  newSetAnnotations,
  REVISION_ANNOTATION,
  revisionOf,
} from "./revisions.ts";
import { type DeploymentSets, newSetSize, type Resize } from "./rolling-plan.ts";
import { hasDeadline, type NewCondition, type Now, newCondition } from "./rollout-status.ts";

/** A deployment with what is found out about it on the way; written at the end. */
export interface RolloutDraft {
  deployment: Deployment;
  revision?: string;
}

type Options = Abortable & { readonly now: Now };

const LONGEST_NAME = 253;
const PROGRESSING = "Progressing";

/** The ReplicaSets of deployments: one for each template that they had. */
export class ReplicaSetRevisions {
  private readonly sets: Informer<ReplicaSet>;

  constructor(
    private readonly deps: ControllerDeps,
    private readonly record: RecordEvent,
  ) {
    this.sets = deps.informers.of(REPLICA_SETS);
  }

  split(deployment: Deployment, sets: readonly ReplicaSet[]): DeploymentSets {
    const newSet = findNewSet(deployment, sets);
    return { newSet, oldSets: sets.filter(({ metadata }) => metadata.uid !== newSet?.metadata.uid) };
  }

  /** Finds the newest set and gives it its revision, its annotations and its minReadySeconds. */
  async update(draft: RolloutDraft, sets: readonly ReplicaSet[], options: Options): Promise<DeploymentSets> {
    const { deployment } = draft;
    const { newSet, oldSets } = this.split(deployment, sets);
    if (newSet === undefined) return { newSet, oldSets };
    const revision = Math.max(0, ...oldSets.map(revisionOf)) + 1;
    const known = newSet.metadata.annotations ?? {};
    const annotations = newSetAnnotations(deployment, known, revision);
    const minReadySeconds = deployment.spec.minReadySeconds ?? 0;
    let updated = newSet;
    if (
      !isDeepStrictEqual({ ...annotations }, { ...known }) ||
      (newSet.spec.minReadySeconds ?? 0) !== minReadySeconds
    ) {
      const spec = { ...newSet.spec, minReadySeconds };
      updated = await this.put({ ...newSet, metadata: { ...newSet.metadata, annotations }, spec }, options);
    }
    draft.revision = annotations[REVISION_ANNOTATION] ?? String(revision);
    if (hasDeadline(deployment) && conditionOf(deployment.status?.conditions, PROGRESSING) === undefined) {
      const message = `Found new replica set ${JSON.stringify(newSet.metadata.name)}`;
      setCondition(draft, { type: PROGRESSING, status: "True", reason: "FoundNewReplicaSet", message }, options.now);
    }
    return { newSet: updated, oldSets };
  }

  /** Creates the set of the newest template. Rejects with `ApiError`; a collision of names is counted in the draft. */
  async create(draft: RolloutDraft, { oldSets }: DeploymentSets, options: Options): Promise<ReplicaSet> {
    const { deployment } = draft;
    const { namespace = "" } = deployment.metadata;
    const revision = Math.max(0, ...oldSets.map(revisionOf)) + 1;
    const size = newSetSize(deployment, 0, sum(oldSets, sizeOf));
    const object = setOf(deployment, { revision, size });
    const name = object.metadata.name ?? "";
    let created: ReplicaSet;
    try {
      created = await this.deps.api.create(REPLICA_SETS, { namespace, object }, options);
      this.sets.wrote(created);
    } catch (error) {
      if (!(error instanceof ApiError) || isNamespaceTerminating(error)) throw error;
      if (error.code !== "AlreadyExists") throw this.failed(draft, { name, error }, options.now);
      const found = await this.deps.api.get(REPLICA_SETS, { namespace, name }, options);
      const isOwn = found.metadata.ownerReferences?.some(({ uid }) => uid === deployment.metadata.uid) === true;
      if (isOwn && findNewSet(deployment, [found]) !== undefined) return found;
      const collisionCount = (deployment.status?.collisionCount ?? 0) + 1;
      draft.deployment = { ...deployment, status: { ...deployment.status, collisionCount } };
      throw error;
    }
    if (size > 0) this.event(deployment, `Scaled up replica set ${name} from 0 to ${size}`);
    draft.revision = String(revision);
    if (hasDeadline(deployment)) {
      const message = `Created new replica set ${JSON.stringify(name)}`;
      setCondition(draft, { type: PROGRESSING, status: "True", reason: "NewReplicaSetCreated", message }, options.now);
    }
    return created;
  }

  /** Resizes sets; resolves with all as they are then. */
  async resize(
    { deployment }: RolloutDraft,
    { newSet, oldSets }: DeploymentSets,
    { plan, ...options }: Options & { readonly plan: readonly Resize[] },
  ): Promise<DeploymentSets> {
    const updated = new Map<string | undefined, ReplicaSet>();
    for (const { set, size } of plan) {
      const before = sizeOf(set);
      const annotations = { ...set.metadata.annotations, ...sizeAnnotations(deployment) };
      if (before === size && isDeepStrictEqual({ ...set.metadata.annotations }, annotations)) continue;
      const spec = { ...set.spec, replicas: size };
      updated.set(
        set.metadata.uid,
        await this.put({ ...set, metadata: { ...set.metadata, annotations }, spec }, options),
      );
      if (before === size) continue;
      const direction = before < size ? "up" : "down";
      this.event(deployment, `Scaled ${direction} replica set ${set.metadata.name} from ${before} to ${size}`);
    }
    const current = (set: ReplicaSet): ReplicaSet => updated.get(set.metadata.uid) ?? set;
    return { newSet: newSet && current(newSet), oldSets: oldSets.map(current) };
  }

  /** Deletes sets beyond the limit of the history. */
  async expire({ deployment }: RolloutDraft, oldSets: readonly ReplicaSet[], options: Abortable): Promise<void> {
    for (const set of expiredSets(deployment, oldSets)) {
      if (this.sets.isDeleting(set)) continue;
      const { namespace = "", name = "", uid = "" } = set.metadata;
      try {
        await this.deps.api.delete(REPLICA_SETS, { namespace, name, uid, propagation: "Background" }, options);
        this.sets.deleted(set);
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
      }
    }
  }

  private async put(object: ReplicaSet, { signal }: Abortable): Promise<ReplicaSet> {
    const { namespace = "", name = "" } = object.metadata;
    const updated = await this.deps.api.update(REPLICA_SETS, { namespace, name, object }, { signal });
    this.sets.wrote(updated);
    return updated;
  }

  private failed(
    draft: RolloutDraft,
    { name, error }: { readonly name: string; readonly error: ApiError },
    now: Now,
  ): ApiError {
    const message = `Failed to create new replica set ${JSON.stringify(name)}: ${error.message}`;
    const reason = "ReplicaSetCreateError";
    if (hasDeadline(draft.deployment))
      setCondition(draft, { type: PROGRESSING, status: "False", reason, message }, now);
    this.record({ type: "Warning", reason, message, resource: DEPLOYMENTS, object: draft.deployment });
    return error;
  }

  private event(deployment: Deployment, message: string): void {
    const reason = "ScalingReplicaSet";
    this.record({ type: "Normal", reason, message, resource: DEPLOYMENTS, object: deployment });
  }
}

function setCondition(draft: RolloutDraft, condition: NewCondition, now: Now): void {
  const { status } = draft.deployment;
  const conditions = withCondition(status?.conditions ?? [], newCondition(condition, now));
  draft.deployment = { ...draft.deployment, status: { ...status, conditions } };
}

function sizeAnnotations(deployment: Deployment): Readonly<Record<string, string>> {
  const wanted = wantedReplicas(deployment);
  return { [DESIRED_ANNOTATION]: String(wanted), [MAX_ANNOTATION]: String(wanted + maxSurge(deployment)) };
}

/** The ReplicaSet of a deployment's template. Pure. */
function setOf(
  deployment: Deployment,
  { revision, size }: { readonly revision: number; readonly size: number },
): ReplicaSet {
  const { metadata, spec, status } = deployment;
  const hash = hashName(spec.template, status?.collisionCount);
  const labels = { ...spec.template.metadata?.labels, [HASH_LABEL]: hash };
  const name = `${(metadata.name ?? "").slice(0, LONGEST_NAME - 1 - hash.length)}-${hash}`;
  const annotations = { ...newSetAnnotations(deployment, {}, revision), ...sizeAnnotations(deployment) };
  return {
    metadata: {
      name,
      ...(metadata.namespace && { namespace: metadata.namespace }),
      labels,
      annotations,
      ownerReferences: [controllerReference({ resource: DEPLOYMENTS, object: deployment })],
    },
    spec: {
      replicas: size,
      minReadySeconds: spec.minReadySeconds ?? 0,
      selector: { ...spec.selector, matchLabels: { ...spec.selector.matchLabels, [HASH_LABEL]: hash } },
      template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
    },
  };
}
