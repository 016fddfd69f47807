import { ApiError, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { ownValue } from "../../lib/own-value.ts";
import type { PersistentVolume, PersistentVolumeClaim } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { RecordEvent } from "../event-sink.ts";
import type { Informer } from "../informers.ts";
import { Reconciler } from "../reconciler.ts";
import { type Binding, BOUND_BY_CONTROLLER } from "./binding.ts";
import { removeFinalizer } from "./finalizers.ts";
import { DIRECTORY_FINALIZER, isOurs, removableDirectory } from "./local-provisioner.ts";

const PROTECTION = "kubernetes.io/pv-protection";

/** Reports the phase of volumes, and reclaims those whose claim is gone. */
export class Volumes {
  private readonly volumes: Informer<PersistentVolume>;
  private readonly reconciler: Reconciler;

  constructor(
    private readonly deps: ControllerDeps,
    private readonly binding: Binding,
    private readonly record: RecordEvent,
  ) {
    this.volumes = deps.informers.of(PERSISTENT_VOLUMES);
    this.reconciler = new Reconciler(deps, {
      name: "persistent volumes",
      reconcile: (name, options) => this.sync(name, options),
    });
  }

  wake(name: string): void {
    this.reconciler.wake(name);
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.reconciler.run(signal);
  }

  private async sync(name: string, options: Abortable): Promise<undefined> {
    await this.volumes.synced(options);
    const volume = this.volumes.get("", name);
    if (volume === undefined) return undefined;
    const { claimRef } = volume.spec;
    if (!claimRef?.uid) {
      await this.settle(volume, "Available", options);
      return undefined;
    }
    const claim = await this.claimOf(volume, options);
    if (claim === undefined) await this.reclaim(volume, options);
    else if (claim.spec.volumeName === name) await this.binding.setVolumeStatus(volume, { phase: "Bound" }, options);
    // The claim found another volume in the meantime.
    else if (claim.spec.volumeName) await this.takeBack(volume, options);
    return undefined;
  }

  /** The claim that a volume is bound to, read anew: what depends on its absence cannot be undone. */
  private async claimOf({ spec }: PersistentVolume, options: Abortable): Promise<PersistentVolumeClaim | undefined> {
    const { namespace = "", name = "", uid } = spec.claimRef ?? {};
    try {
      const claim = await this.deps.api.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name }, options);
      return claim.metadata.uid === uid ? claim : undefined;
    } catch (error) {
      if (error instanceof ApiError && error.code === "NotFound") return undefined;
      throw error;
    }
  }

  private async takeBack(volume: PersistentVolume, options: Abortable): Promise<void> {
    if (isOurs(volume)) await this.reclaim(volume, options);
    else if (ownValue(volume.metadata.annotations, BOUND_BY_CONTROLLER) !== undefined) {
      await this.settle(await this.binding.release(volume, options), "Available", options);
    }
  }

  private async reclaim(volume: PersistentVolume, options: Abortable): Promise<void> {
    const policy = volume.spec.persistentVolumeReclaimPolicy;
    if (policy === "Retain") return this.settle(volume, "Released", options);
    if (volume.status?.phase === "Failed") await this.letGo(volume, options);
    else await this.settle(volume, "Released", options);
    if (policy === "Recycle") {
      const message = "No recycler plugin found for the volume!";
      return this.fail(volume, { reason: "VolumeFailedRecycle", message }, options);
    }
    if (!isOurs(volume)) {
      const name = JSON.stringify(volume.metadata.name);
      const message = `error getting deleter volume plugin for volume ${name}: no deletable volume plugin matched`;
      return this.fail(volume, { reason: "VolumeFailedDelete", message }, options);
    }
    return this.delete(volume, options);
  }

  private async delete(volume: PersistentVolume, options: Abortable): Promise<void> {
    const { volumes, api } = this.deps;
    if (volumes === undefined) return;
    const directory = removableDirectory(volume, volumes.root);
    if ("problem" in directory) {
      return this.fail(volume, { reason: "VolumeFailedDelete", message: directory.problem }, options);
    }
    try {
      await volumes.remove(directory.name);
    } catch (error) {
      const message = messageOf(error);
      await this.fail(volume, { reason: "VolumeFailedDelete", message }, options);
      throw new ApiError("Unavailable", message, { cause: error });
    }
    const { name = "", uid = "" } = volume.metadata;
    await removeFinalizer(api, { resource: PERSISTENT_VOLUMES, object: volume, name: DIRECTORY_FINALIZER }, options);
    try {
      await api.delete(PERSISTENT_VOLUMES, { name, uid }, options);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
    }
  }

  /** Sets the phase of a volume that no claim uses, and lets it go if it is being deleted. */
  private async settle(volume: PersistentVolume, phase: "Available" | "Released", options: Abortable): Promise<void> {
    await this.letGo(await this.binding.setVolumeStatus(volume, { phase }, options), options);
  }

  /** Removes what keeps a volume that is being deleted, but for a directory that has to go first. */
  private async letGo(volume: PersistentVolume, options: Abortable): Promise<void> {
    const { deletionTimestamp, finalizers = [] } = volume.metadata;
    if (deletionTimestamp === undefined) return;
    const { persistentVolumeReclaimPolicy: policy, claimRef } = volume.spec;
    const isKept = isOurs(volume) && policy === "Delete" && claimRef !== undefined;
    for (const name of [PROTECTION, ...(isKept ? [] : [DIRECTORY_FINALIZER])]) {
      if (finalizers.includes(name)) {
        await removeFinalizer(this.deps.api, { resource: PERSISTENT_VOLUMES, object: volume, name }, options);
      }
    }
  }

  private async fail(
    volume: PersistentVolume,
    { reason, message }: { readonly reason: string; readonly message: string },
    options: Abortable,
  ): Promise<void> {
    if (volume.status?.phase === "Failed" && volume.status.message === message) return;
    const fresh = this.volumes.get("", volume.metadata.name ?? "") ?? volume;
    await this.binding.setVolumeStatus(fresh, { phase: "Failed", message }, options);
    this.record({ type: "Warning", reason, message, resource: PERSISTENT_VOLUMES, object: volume });
  }
}
