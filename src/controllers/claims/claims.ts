import {
  ApiError,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  STORAGE_CLASSES,
} from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Loop } from "../../lib/loop.ts";
import { ownValue } from "../../lib/own-value.ts";
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { RecordEvent } from "../event-sink.ts";
import type { Informer } from "../informers.ts";
import { keyOf, partsOf } from "../object-index.ts";
import { Reconciler } from "../reconciler.ts";
import { BIND_COMPLETED, Binding } from "./binding.ts";
import { ClaimConsumers, claimNamesOf } from "./claim-consumers.ts";
import { EphemeralClaims } from "./ephemeral-claims.ts";
import { removeFinalizer } from "./finalizers.ts";
import { LOCAL_PROVISIONER, unprovisionable, volumeFor, volumeNameOf } from "./local-provisioner.ts";
import { bestVolume, classNameOf, isReservedFor, misfitOf } from "./match-volume.ts";
import { Volumes } from "./volumes.ts";

const PROTECTION = "kubernetes.io/pvc-protection";
const NO_PROVISIONER = "kubernetes.io/no-provisioner";

/** Binds claims to volumes, makes volumes of directories for them, and reclaims those whose claims are gone. */
export function claimController(deps: ControllerDeps): Loop {
  const claims = new Claims(deps);
  return { name: "volume claims", run: (signal) => claims.run(signal) };
}

class Claims {
  private readonly claims: Informer<PersistentVolumeClaim>;
  private readonly volumes: Informer<PersistentVolume>;
  private readonly classes: Informer<StorageClass>;
  private readonly nodes: Informer<Node>;
  private readonly consumers: ClaimConsumers;
  private readonly binding: Binding;
  private readonly record: RecordEvent;
  private readonly reconciler: Reconciler;
  private readonly volumeLoop: Volumes;
  private readonly ephemeral: EphemeralClaims;
  /** Keys of claims without a volume. */
  private readonly pending = new Set<string>();
  /** What was last said about a claim, by UID: the same is not said twice. */
  private readonly said = new Map<string, string>();

  constructor(private readonly deps: ControllerDeps) {
    this.claims = deps.informers.of(PERSISTENT_VOLUME_CLAIMS);
    this.volumes = deps.informers.of(PERSISTENT_VOLUMES);
    this.classes = deps.informers.of(STORAGE_CLASSES);
    this.nodes = deps.informers.of(NODES);
    this.consumers = new ClaimConsumers(deps);
    this.binding = new Binding(deps);
    this.record = deps.events.recorder("persistentvolume-controller");
    this.reconciler = new Reconciler(deps, {
      name: "volume claims",
      reconcile: (key, options) => this.sync(key, options),
    });
    this.volumeLoop = new Volumes(deps, this.binding, this.record);
    this.ephemeral = new EphemeralClaims(deps);
  }

  async run(signal: AbortSignal): Promise<void> {
    const options = { signal };
    const wake = (key: string): void => this.reconciler.wake(key);
    this.claims.onChange(({ kind, object }) => {
      const key = keyOf(object);
      if (kind === "deleted") {
        this.pending.delete(key);
        this.said.delete(object.metadata.uid ?? "");
      } else {
        if (isBound(object)) this.pending.delete(key);
        else this.pending.add(key);
        wake(key);
      }
      if (object.spec.volumeName) this.volumeLoop.wake(object.spec.volumeName);
    }, options);
    this.volumes.onChange(({ object }) => {
      this.volumeLoop.wake(object.metadata.name ?? "");
      const { claimRef } = object.spec;
      if (claimRef !== undefined) wake(`${claimRef.namespace ?? ""}/${claimRef.name ?? ""}`);
      else this.wakePending(classNameOf(object));
    }, options);
    this.classes.onChange(({ object }) => this.wakePending(object.metadata.name ?? ""), options);
    this.consumers.follow((key) => {
      const { namespace, name } = partsOf(key);
      const claim = this.claims.get(namespace, name);
      if (claim !== undefined && (!isBound(claim) || claim.metadata.deletionTimestamp !== undefined)) wake(key);
    }, options);
    const loops = [this.reconciler.run(signal), this.volumeLoop.run(signal), this.ephemeral.run(signal)];
    await Promise.all(loops);
  }

  private wakePending(className: string): void {
    for (const key of this.pending) {
      const { namespace, name } = partsOf(key);
      const claim = this.claims.get(namespace, name);
      if (claim !== undefined && classNameOf(claim) === className) this.reconciler.wake(key);
    }
  }

  private async sync(key: string, options: Abortable): Promise<undefined> {
    const informers = [this.claims, this.volumes, this.classes, this.nodes, this.deps.informers.of(PODS)];
    await Promise.all(informers.map((informer) => informer.synced(options)));
    const { namespace, name } = partsOf(key);
    const claim = this.claims.get(namespace, name);
    if (claim === undefined) return undefined;
    if (claim.metadata.deletionTimestamp !== undefined) await this.unprotect(claim, options);
    else if (ownValue(claim.metadata.annotations, BIND_COMPLETED) !== undefined) await this.checkBound(claim, options);
    else if (claim.spec.volumeName) await this.bindNamed(claim, options);
    else await this.bindAny(claim, options);
    return undefined;
  }

  /** Lets a claim go that no pod uses. */
  private async unprotect(claim: PersistentVolumeClaim, options: Abortable): Promise<void> {
    const { namespace = "", name = "" } = claim.metadata;
    if (!claim.metadata.finalizers?.includes(PROTECTION)) return;
    const isUser = (pod: Parameters<typeof claimNamesOf>[0]): boolean =>
      Boolean(pod.spec.nodeName) && claimNamesOf(pod).includes(name);
    if (this.consumers.of(`${namespace}/${name}`).some(isUser)) return;
    // The data may go with the claim: the informer's word is not enough.
    const { items } = await this.deps.api.list(PODS, { namespace }, options);
    if (!items.some(isUser))
      await removeFinalizer(
        this.deps.api,
        { resource: PERSISTENT_VOLUME_CLAIMS, object: claim, name: PROTECTION },
        options,
      );
  }

  private async checkBound(claim: PersistentVolumeClaim, options: Abortable): Promise<void> {
    const volume = this.volumes.get("", claim.spec.volumeName ?? "");
    if (volume === undefined) {
      const message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
      return this.lose(claim, { reason: "ClaimLost", message }, options);
    }
    if (volume.spec.claimRef?.uid === claim.metadata.uid) return this.binding.setClaimBound(claim, volume, options);
    if (volume.spec.claimRef === undefined) return this.binding.bind({ claim, volume }, options);
    const message = "Two claims are bound to the same volume, this one is bound incorrectly";
    return this.lose(claim, { reason: "ClaimMisbound", message }, options);
  }

  private async lose(
    claim: PersistentVolumeClaim,
    { reason, message }: { readonly reason: string; readonly message: string },
    options: Abortable,
  ): Promise<void> {
    if (claim.status?.phase === "Lost") return;
    const { conditions } = claim.status ?? {};
    await this.binding.setClaimStatus(claim, { phase: "Lost", ...(conditions && { conditions }) }, options);
    this.say(claim, { type: "Warning", reason, message });
  }

  private async bindNamed(claim: PersistentVolumeClaim, options: Abortable): Promise<void> {
    const volume = this.volumes.get("", claim.spec.volumeName ?? "");
    if (volume === undefined) return;
    const name = JSON.stringify(volume.metadata.name);
    if (volume.spec.claimRef !== undefined && !isReservedFor(volume, claim)) {
      const message = `volume ${name} already bound to a different claim.`;
      return this.say(claim, { type: "Warning", reason: "FailedBinding", message });
    }
    const misfit = misfitOf(volume, claim);
    if (misfit === undefined) return this.binding.bind({ claim, volume }, options);
    const message = `Cannot bind to requested volume ${name}: ${misfit}`;
    return this.say(claim, { type: "Warning", reason: "VolumeMismatch", message });
  }

  private async bindAny(claim: PersistentVolumeClaim, options: Abortable): Promise<void> {
    const className = classNameOf(claim);
    const storageClass = this.classes.get("", className);
    const waits = storageClass?.volumeBindingMode === "WaitForFirstConsumer";
    const isUsed = this.consumers.of(keyOf(claim)).some(({ metadata }) => metadata.deletionTimestamp === undefined);
    const all = this.volumes.list();
    const volume = bestVolume(claim, waits && !isUsed ? all.filter((one) => isReservedFor(one, claim)) : all);
    if (volume !== undefined) return this.binding.bind({ claim, volume }, options);
    if (className === "") {
      const message = "no persistent volumes available for this claim and no storage class is set";
      return this.say(claim, { type: "Normal", reason: "FailedBinding", message });
    }
    if (storageClass === undefined) {
      const message = `storageclass.storage.k8s.io ${JSON.stringify(className)} not found`;
      return this.say(claim, { type: "Warning", reason: "ProvisioningFailed", message });
    }
    if (waits && !isUsed) {
      const message = "waiting for first consumer to be created before binding";
      return this.say(claim, { type: "Normal", reason: "WaitForFirstConsumer", message });
    }
    return this.provision(claim, storageClass, options);
  }

  /** Makes a directory and a volume of it, and binds them. Repeated, it finds what it made. */
  private async provision(claim: PersistentVolumeClaim, storageClass: StorageClass, options: Abortable): Promise<void> {
    const { provisioner } = storageClass;
    if (provisioner === NO_PROVISIONER) return;
    const { volumes } = this.deps;
    const node = this.nodeOf(claim);
    if (provisioner !== LOCAL_PROVISIONER || volumes === undefined) {
      const message = `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`;
      return this.say(claim, { type: "Normal", reason: "ExternalProvisioning", message });
    }
    if (node === undefined) return;
    const problem = unprovisionable(claim);
    if (problem !== undefined) {
      const message = `failed to provision volume with StorageClass ${JSON.stringify(storageClass.metadata.name)}: ${problem}`;
      return this.say(claim, { type: "Warning", reason: "ProvisioningFailed", message });
    }
    const name = volumeNameOf(claim);
    const volume = await this.createVolume({ claim, storageClass, node }, name, options);
    this.say(claim, {
      type: "Normal",
      reason: "ProvisioningSucceeded",
      message: `Successfully provisioned volume ${name} using ${LOCAL_PROVISIONER}`,
    });
    const annotations = {
      "volume.beta.kubernetes.io/storage-provisioner": provisioner,
      "volume.kubernetes.io/storage-provisioner": provisioner,
      "volume.kubernetes.io/selected-node": node.metadata.name ?? "",
    };
    await this.binding.bind({ claim, volume, annotations }, options);
  }

  private async createVolume(
    made: { readonly claim: PersistentVolumeClaim; readonly storageClass: StorageClass; readonly node: Node },
    name: string,
    options: Abortable,
  ): Promise<PersistentVolume> {
    const { api, volumes } = this.deps;
    const root = volumes?.root ?? "";
    try {
      await volumes?.make(name);
    } catch (error) {
      const message = `failed to provision volume ${name}: ${error instanceof Error ? error.message : String(error)}`;
      this.say(made.claim, { type: "Warning", reason: "ProvisioningFailed", message });
      throw new ApiError("Unavailable", message, { cause: error });
    }
    try {
      const volume = await api.create(PERSISTENT_VOLUMES, { object: volumeFor({ ...made, root }) }, options);
      this.volumes.wrote(volume);
      return volume;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "AlreadyExists") throw error;
      return api.get(PERSISTENT_VOLUMES, { name }, options);
    }
  }

  /** The node of a pod that uses the claim, or the one there is. */
  private nodeOf(claim: PersistentVolumeClaim): Node | undefined {
    const used = this.consumers.of(keyOf(claim)).map(({ spec }) => spec.nodeName);
    const named = used.flatMap((name) => (name ? [this.nodes.get("", name)] : []));
    return named.find((node) => node !== undefined) ?? this.nodes.list()[0];
  }

  private say(
    claim: PersistentVolumeClaim,
    event: { type: "Normal" | "Warning"; reason: string; message: string },
  ): void {
    const { uid = "" } = claim.metadata;
    if (this.said.get(uid) === event.message) return;
    this.said.set(uid, event.message);
    this.record({ ...event, resource: PERSISTENT_VOLUME_CLAIMS, object: claim });
  }
}

function isBound({ status }: PersistentVolumeClaim): boolean {
  return status?.phase === "Bound";
}
