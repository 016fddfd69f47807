import { ApiError, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { PersistentVolumeClaim, Pod, PodTemplateSpec, StatefulSet, Volume } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { RecordEvent } from "../event-sink.ts";
import type { Informer } from "../informers.ts";
import { podOfTemplate } from "../pod-control.ts";
import { claimOwners, isStaleClaim } from "./claim-owners.ts";
import { podNameOf } from "./ordinals.ts";
import { POD_INDEX_LABEL, POD_NAME_LABEL, REVISION_LABEL } from "./stateful-plan.ts";

export interface NewStatefulPod {
  readonly ordinal: number;
  readonly template: PodTemplateSpec;
  /** The name of the revision of the template. */
  readonly revision: string;
}

/** Creates and deletes the pods of StatefulSets, with their claims. */
export class StatefulPods {
  private readonly pods: Informer<Pod>;
  private readonly claims: Informer<PersistentVolumeClaim>;

  constructor(
    private readonly deps: ControllerDeps,
    private readonly record: RecordEvent,
  ) {
    this.pods = deps.informers.of(PODS);
    this.claims = deps.informers.of(PERSISTENT_VOLUME_CLAIMS);
  }

  /** Creates claims, then the pod. Does nothing while a claim of a former pod of that name is on its way out. */
  async create(set: StatefulSet, made: NewStatefulPod, options: Abortable): Promise<void> {
    const { namespace = "" } = set.metadata;
    const object = statefulPod(set, made);
    const name = object.metadata.name ?? "";
    const retention = set.spec.persistentVolumeClaimRetentionPolicy?.whenScaled;
    const claims = claimsOf(set, made.ordinal).map(({ metadata }) => this.claims.get(namespace, metadata.name ?? ""));
    if (retention === "Delete" && claims.some((claim) => claim !== undefined && isStaleClaim(claim, name))) return;
    await this.attempt(set, { verb: "Create", pod: name }, async () => {
      await this.provide(set, made.ordinal, options);
      const pod = await this.deps.api.create(PODS, { namespace, object }, options);
      this.pods.wrote(pod);
      await this.retain(set, { pod, ordinal: made.ordinal }, options);
    });
  }

  async delete(set: StatefulSet, pod: Pod, options: Abortable): Promise<void> {
    const { namespace = "", name = "", uid = "" } = pod.metadata;
    await this.attempt(set, { verb: "Delete", pod: name }, async () => {
      try {
        await this.deps.api.delete(PODS, { namespace, name, uid }, options);
        this.pods.deleted(pod);
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
      }
    });
  }

  async identify(set: StatefulSet, { pod, ordinal }: { pod: Pod; ordinal: number }, options: Abortable): Promise<void> {
    const { namespace = "", name = "", uid } = pod.metadata;
    const labels = { [POD_NAME_LABEL]: podNameOf(set, ordinal), [POD_INDEX_LABEL]: String(ordinal) };
    await this.attempt(set, { verb: "Update", pod: name }, async () => {
      const change = { namespace, name, type: "merge", body: { metadata: { uid, labels } } } as const;
      this.pods.wrote(await this.deps.api.patch<Pod>(PODS, change, options));
    });
  }

  /** Creates the claims of a pod that are missing. */
  async provide(set: StatefulSet, ordinal: number, options: Abortable): Promise<void> {
    const { namespace = "" } = set.metadata;
    for (const object of claimsOf(set, ordinal)) {
      const { name = "" } = object.metadata;
      const known = this.claims.get(namespace, name);
      if (known !== undefined) {
        if (known.metadata.deletionTimestamp === undefined) continue;
        throw new ApiError("Unavailable", `pvc ${name} is being deleted`);
      }
      await this.createClaim(set, { object, pod: podNameOf(set, ordinal) }, options);
    }
  }

  /** Makes the claims of a pod go with the set or the pod, as the retention policy says. */
  async retain(set: StatefulSet, { pod, ordinal }: { pod: Pod; ordinal: number }, options: Abortable): Promise<void> {
    const { namespace = "" } = set.metadata;
    for (const { metadata } of claimsOf(set, ordinal)) {
      const name = metadata.name ?? "";
      const claim = this.claims.get(namespace, name);
      const ownerReferences = claim && claimOwners(claim, { set, pod, ordinal });
      if (claim === undefined || ownerReferences === undefined) continue;
      const object = { ...claim, metadata: { ...claim.metadata, ownerReferences } };
      this.claims.wrote(await this.deps.api.update(PERSISTENT_VOLUME_CLAIMS, { namespace, name, object }, options));
    }
  }

  private async createClaim(
    set: StatefulSet,
    { object, pod }: { readonly object: PersistentVolumeClaim; readonly pod: string },
    options: Abortable,
  ): Promise<void> {
    const { namespace = "", name: setName = "" } = set.metadata;
    const { name = "" } = object.metadata;
    try {
      this.claims.wrote(await this.deps.api.create(PERSISTENT_VOLUME_CLAIMS, { namespace, object }, options));
      const message = `Create Claim ${name} Pod ${pod} in StatefulSet ${setName} success`;
      this.record({ type: "Normal", reason: "SuccessfulCreate", message, resource: STATEFUL_SETS, object: set });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "AlreadyExists") return;
      const message = `Create Claim ${name} for Pod ${pod} in StatefulSet ${setName} failed error: ${error.message}`;
      this.record({ type: "Warning", reason: "FailedCreate", message, resource: STATEFUL_SETS, object: set });
      throw error;
    }
  }

  private async attempt(
    set: StatefulSet,
    { verb, pod }: { readonly verb: "Create" | "Delete" | "Update"; readonly pod: string },
    act: () => Promise<void>,
  ): Promise<void> {
    const what = `${verb} Pod ${pod} in StatefulSet ${set.metadata.name ?? ""}`;
    const about = { resource: STATEFUL_SETS, object: set };
    try {
      await act();
      this.record({ type: "Normal", reason: `Successful${verb}`, message: `${what} successful`, ...about });
    } catch (error) {
      if (error instanceof ApiError && error.code !== "AlreadyExists") {
        const message = `${what} failed error: ${error.message}`;
        this.record({ type: "Warning", reason: `Failed${verb}`, message, ...about });
      }
      throw error;
    }
  }
}

/** The pod of a number, with its name, its labels and its volumes. Pure. */
export function statefulPod(set: StatefulSet, { ordinal, template, revision }: NewStatefulPod): Pod {
  const name = podNameOf(set, ordinal);
  const pod = podOfTemplate(template, { resource: STATEFUL_SETS, object: set }, { name });
  const labels = {
    ...pod.metadata.labels,
    [POD_NAME_LABEL]: name,
    [POD_INDEX_LABEL]: String(ordinal),
    [REVISION_LABEL]: revision,
  };
  const templates = set.spec.volumeClaimTemplates ?? [];
  const claimed: readonly Volume[] = templates.map(({ metadata }) => ({
    name: metadata.name ?? "",
    persistentVolumeClaim: { claimName: claimNameOf(set, metadata.name ?? "", ordinal) },
  }));
  const others = (pod.spec.volumes ?? []).filter((volume) => !claimed.some((one) => one.name === volume.name));
  const volumes = [...claimed, ...others];
  return {
    // Kubernetes makes the pod of the template first, as for a name that the server chooses.
    metadata: { ...pod.metadata, generateName: `${set.metadata.name ?? ""}-`, labels },
    spec: {
      ...pod.spec,
      hostname: name,
      ...(set.spec.serviceName && { subdomain: set.spec.serviceName }),
      ...(volumes.length > 0 && { volumes }),
    },
  };
}

function claimNameOf({ metadata }: StatefulSet, template: string, ordinal: number): string {
  return `${template}-${metadata.name ?? ""}-${ordinal}`;
}

/** The claims of a pod. Pure. */
export function claimsOf(set: StatefulSet, ordinal: number): readonly PersistentVolumeClaim[] {
  const { namespace = "" } = set.metadata;
  return (set.spec.volumeClaimTemplates ?? []).map(({ metadata, spec }) => {
    const { annotations, finalizers } = metadata;
    const labels = { ...metadata.labels, ...set.spec.selector.matchLabels };
    return {
      metadata: {
        name: claimNameOf(set, metadata.name ?? "", ordinal),
        namespace,
        labels,
        ...(annotations && { annotations }),
        ...(finalizers && { finalizers }),
      },
      spec,
    };
  });
}
