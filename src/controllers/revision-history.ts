import { ApiError, CONTROLLER_REVISIONS, DAEMON_SETS, type KubeObject } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { canonicalJson } from "../model/canonical-json.ts";
import type { ControllerRevision, LabelSelector, PodTemplateSpec } from "../model/generated/types.ts";
import type { ControllerDeps } from "./controller.ts";
import type { Informer } from "./informers.ts";
import { claimObjects, controllerReference, type Owner } from "./owned-objects.ts";
import { hashName } from "./template-hash.ts";

const HASH_LABEL = "controller.kubernetes.io/hash";
/** DaemonSets are older than the label that all others use. */
const DAEMON_HASH_LABEL = "controller-revision-hash";
const LONGEST_PREFIX = 223;

/** A set with a template whose former contents are kept as ControllerRevisions. */
export interface VersionedSet extends KubeObject {
  readonly spec: {
    readonly selector: LabelSelector;
    readonly template: PodTemplateSpec;
    readonly revisionHistoryLimit?: number;
  };
  readonly status?: { readonly collisionCount?: number };
}

export interface Revisions {
  /** The one of the template as it is now. */
  readonly update: ControllerRevision;
  /** All, the oldest first. */
  readonly all: readonly ControllerRevision[];
  readonly collisionCount: number;
}

/** The contents of a set that a revision keeps: a patch that brings them back. Pure. */
export function revisionData(template: PodTemplateSpec): object {
  return { spec: { template: { ...template, $patch: "replace" } } };
}

/** The template that a revision keeps. */
export function templateOf({ data }: ControllerRevision): PodTemplateSpec {
  // Only what `revisionData` made is stored in revisions of a set; others fail the creation of pods with a clear error.
  const kept = data as { readonly spec?: { readonly template?: PodTemplateSpec & { readonly $patch?: string } } };
  const { $patch: _patch, ...template } = kept.spec?.template ?? {};
  return template;
}

/** The hash in the name of a revision. */
export function hashOf({ metadata }: ControllerRevision): string {
  return metadata.labels?.[HASH_LABEL] ?? metadata.labels?.[DAEMON_HASH_LABEL] ?? "";
}

/** Keeps the templates of sets as ControllerRevisions. */
export class RevisionHistory {
  private readonly revisions: Informer<ControllerRevision>;

  constructor(private readonly deps: ControllerDeps) {
    this.revisions = deps.informers.of(CONTROLLER_REVISIONS);
  }

  async synced(options: Abortable): Promise<void> {
    await this.revisions.synced(options);
  }

  /** Finds or creates the revision of the template as it is now; going back to an old template makes it the newest. */
  async sync<T extends VersionedSet>(owner: Owner<T>, options: Abortable): Promise<Revisions> {
    const { spec, status } = owner.object;
    const claim = { api: this.deps.api, resource: CONTROLLER_REVISIONS, informer: this.revisions };
    const all = [...(await claimObjects(claim, { owner, selector: spec.selector }, options))].sort(byRevision);
    const wanted = canonicalJson(revisionData(spec.template));
    const equal = all.filter(({ data }) => canonicalJson(data) === wanted).at(-1);
    const newest = all.at(-1);
    const collisionCount = status?.collisionCount ?? 0;
    if (equal !== undefined && equal === newest) return { update: equal, all, collisionCount };
    const revision = (newest?.revision ?? 0) + 1;
    if (equal !== undefined) {
      const update = await this.put({ ...equal, revision }, options);
      return { update, all: [...all.filter((one) => one !== equal), update], collisionCount };
    }
    const made = await this.create(owner, { revision, collisionCount }, options);
    return { update: made.update, all: [...all, made.update], collisionCount: made.collisionCount };
  }

  /** Deletes revisions that nothing uses beyond the limit, the oldest first. */
  async truncate(
    all: readonly ControllerRevision[],
    { limit, isLive }: { readonly limit: number; isLive(revision: ControllerRevision): boolean },
    options: Abortable,
  ): Promise<void> {
    const unused = all.filter((revision) => !isLive(revision) && !this.revisions.isDeleting(revision));
    for (const revision of unused.slice(0, Math.max(0, unused.length - limit))) {
      const { namespace = "", name = "", uid = "" } = revision.metadata;
      try {
        await this.deps.api.delete(CONTROLLER_REVISIONS, { namespace, name, uid }, options);
        this.revisions.deleted(revision);
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
      }
    }
  }

  /** A name that another content has already is avoided by counting the collisions into the hash. */
  private async create<T extends VersionedSet>(
    owner: Owner<T>,
    { revision, collisionCount }: { readonly revision: number; readonly collisionCount: number },
    options: Abortable,
  ): Promise<{ readonly update: ControllerRevision; readonly collisionCount: number }> {
    const { metadata, spec } = owner.object;
    const { namespace = "", name: ownerName = "" } = metadata;
    const data = revisionData(spec.template);
    for (let count = collisionCount; ; count++) {
      const hash = hashName(data, count);
      const name = `${ownerName.slice(0, LONGEST_PREFIX)}-${hash}`;
      const label = owner.resource.kind === DAEMON_SETS.kind ? DAEMON_HASH_LABEL : HASH_LABEL;
      const object: ControllerRevision = {
        metadata: {
          name,
          namespace,
          labels: { ...spec.template.metadata?.labels, [label]: hash },
          ...(metadata.annotations && { annotations: metadata.annotations }),
          ownerReferences: [controllerReference(owner)],
        },
        data,
        revision,
      };
      try {
        const update = await this.deps.api.create(CONTROLLER_REVISIONS, { namespace, object }, options);
        this.revisions.wrote(update);
        return { update, collisionCount: count };
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "AlreadyExists") throw error;
        const found = await this.deps.api.get(CONTROLLER_REVISIONS, { namespace, name }, options);
        if (canonicalJson(found.data) === canonicalJson(data)) return { update: found, collisionCount: count };
      }
    }
  }

  private async put(object: ControllerRevision, options: Abortable): Promise<ControllerRevision> {
    const { namespace = "", name = "" } = object.metadata;
    const updated = await this.deps.api.update(CONTROLLER_REVISIONS, { namespace, name, object }, options);
    this.revisions.wrote(updated);
    return updated;
  }
}

function byRevision(a: ControllerRevision, b: ControllerRevision): number {
  const [nameA, nameB] = [a.metadata.name ?? "", b.metadata.name ?? ""];
  return a.revision - b.revision || (nameA < nameB ? -1 : 1);
}
