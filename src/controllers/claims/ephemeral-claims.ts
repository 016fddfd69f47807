import { ApiError, PERSISTENT_VOLUME_CLAIMS, PODS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { PersistentVolumeClaim, Pod, Volume } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { Informer } from "../informers.ts";
import { keyOf, partsOf } from "../object-index.ts";
import { controllerReference } from "../owned-objects.ts";
import { Reconciler } from "../reconciler.ts";

/** Creates the claims of ephemeral volumes; they go with their pods. */
export class EphemeralClaims {
  private readonly pods: Informer<Pod>;
  private readonly claims: Informer<PersistentVolumeClaim>;
  private readonly reconciler: Reconciler;

  constructor(private readonly deps: ControllerDeps) {
    this.pods = deps.informers.of(PODS);
    this.claims = deps.informers.of(PERSISTENT_VOLUME_CLAIMS);
    this.reconciler = new Reconciler(deps, {
      name: "ephemeral volumes",
      reconcile: (key, options) => this.sync(key, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    this.pods.onChange(
      ({ kind, object }) => {
        const hasSome = object.spec.volumes?.some(({ ephemeral }) => ephemeral !== undefined) === true;
        if (kind === "added" && hasSome) this.reconciler.wake(keyOf(object));
      },
      { signal },
    );
    await this.reconciler.run(signal);
  }

  private async sync(key: string, options: Abortable): Promise<undefined> {
    await Promise.all([this.pods.synced(options), this.claims.synced(options)]);
    const { namespace, name } = partsOf(key);
    const pod = this.pods.get(namespace, name);
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return undefined;
    for (const volume of pod.spec.volumes ?? []) {
      const object = claimOf(pod, volume);
      if (object === undefined || this.claims.get(namespace, object.metadata.name ?? "") !== undefined) continue;
      try {
        this.claims.wrote(await this.deps.api.create(PERSISTENT_VOLUME_CLAIMS, { namespace, object }, options));
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "AlreadyExists") throw error;
      }
    }
    return undefined;
  }
}

/** The claim of an ephemeral volume; undefined for another one. Pure. */
function claimOf(pod: Pod, { name, ephemeral }: Volume): PersistentVolumeClaim | undefined {
  const template = ephemeral?.volumeClaimTemplate;
  if (template === undefined) return undefined;
  const { labels, annotations } = template.metadata ?? {};
  return {
    metadata: {
      name: `${pod.metadata.name ?? ""}-${name}`,
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ownerReferences: [controllerReference({ resource: PODS, object: pod })],
    },
    spec: template.spec,
  };
}
