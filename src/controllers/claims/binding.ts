import { apiVersionOf, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import { ownValue } from "../../lib/own-value.ts";
import type {
  ObjectMeta,
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimStatus,
  PersistentVolumeStatus,
} from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { Informer } from "../informers.ts";
import { isSameStatus } from "../status-comparison.ts";

export const BIND_COMPLETED = "pv.kubernetes.io/bind-completed";
export const BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller";

/** Writes the two halves of a binding. Every step may be repeated. */
export class Binding {
  private readonly claims: Informer<PersistentVolumeClaim>;
  private readonly volumes: Informer<PersistentVolume>;

  constructor(private readonly deps: ControllerDeps) {
    this.claims = deps.informers.of(PERSISTENT_VOLUME_CLAIMS);
    this.volumes = deps.informers.of(PERSISTENT_VOLUMES);
  }

  async bind(
    {
      claim,
      volume,
      annotations,
    }: {
      readonly claim: PersistentVolumeClaim;
      readonly volume: PersistentVolume;
      readonly annotations?: Readonly<Record<string, string>>;
    },
    options: Abortable,
  ): Promise<void> {
    const reserved = await this.reserve(claim, volume, options);
    const bound = await this.setVolumeStatus(reserved, { phase: "Bound" }, options);
    const named = await this.nameVolume({ claim, volume: bound, ...(annotations && { annotations }) }, options);
    await this.setClaimBound(named, bound, options);
  }

  /** The status of a claim that is bound: what its volume offers. */
  async setClaimBound(claim: PersistentVolumeClaim, { spec }: PersistentVolume, options: Abortable): Promise<void> {
    const { accessModes, capacity } = spec;
    const status = {
      ...claim.status,
      phase: "Bound",
      ...(accessModes && { accessModes }),
      ...(capacity && { capacity }),
    };
    await this.setClaimStatus(claim, status, options);
  }

  async setClaimStatus(
    claim: PersistentVolumeClaim,
    status: PersistentVolumeClaimStatus,
    options: Abortable,
  ): Promise<void> {
    if (isSameStatus(claim.status, status)) return;
    const { namespace = "", name = "" } = claim.metadata;
    const change = { namespace, name, subresource: "status", object: { ...claim, status } } as const;
    this.claims.wrote(await this.deps.api.update(PERSISTENT_VOLUME_CLAIMS, change, options));
  }

  async setVolumeStatus(
    volume: PersistentVolume,
    { phase, reason, message }: PersistentVolumeStatus,
    options: Abortable,
  ): Promise<PersistentVolume> {
    const known = volume.status ?? {};
    if (known.phase === phase && known.message === message) return volume;
    const { name = "" } = volume.metadata;
    const status = { ...(phase && { phase }), ...(message && { message }), ...(reason && { reason }) };
    const change = { name, subresource: "status", object: { ...volume, status } } as const;
    const updated = await this.deps.api.update(PERSISTENT_VOLUMES, change, options);
    this.volumes.wrote(updated);
    return updated;
  }

  /** Takes a volume from a claim that it was given to. */
  async release(volume: PersistentVolume, options: Abortable): Promise<PersistentVolume> {
    const { claimRef: _claim, ...spec } = volume.spec;
    const { [BOUND_BY_CONTROLLER]: _mark, ...annotations } = volume.metadata.annotations ?? {};
    return this.putVolume({ ...volume, metadata: { ...volume.metadata, annotations }, spec }, options);
  }

  private async reserve(
    { metadata }: PersistentVolumeClaim,
    volume: PersistentVolume,
    options: Abortable,
  ): Promise<PersistentVolume> {
    const { claimRef } = volume.spec;
    const { namespace = "", name = "", uid = "", resourceVersion = "" } = metadata;
    if (claimRef?.uid === uid) return volume;
    const { kind } = PERSISTENT_VOLUME_CLAIMS;
    const reference = {
      apiVersion: apiVersionOf(PERSISTENT_VOLUME_CLAIMS),
      kind,
      namespace,
      name,
      uid,
      resourceVersion,
    };
    const marked =
      claimRef === undefined ? withAnnotations(volume.metadata, { [BOUND_BY_CONTROLLER]: "yes" }) : volume.metadata;
    return this.putVolume({ ...volume, metadata: marked, spec: { ...volume.spec, claimRef: reference } }, options);
  }

  private async nameVolume(
    {
      claim,
      volume,
      annotations = {},
    }: {
      readonly claim: PersistentVolumeClaim;
      readonly volume: PersistentVolume;
      readonly annotations?: Readonly<Record<string, string>>;
    },
    options: Abortable,
  ): Promise<PersistentVolumeClaim> {
    const { namespace = "", name = "" } = claim.metadata;
    const volumeName = volume.metadata.name ?? "";
    const isNamed = claim.spec.volumeName === volumeName;
    if (isNamed && ownValue(claim.metadata.annotations, BIND_COMPLETED) !== undefined) return claim;
    const metadata = withAnnotations(claim.metadata, {
      ...annotations,
      [BIND_COMPLETED]: "yes",
      ...(!isNamed && { [BOUND_BY_CONTROLLER]: "yes" }),
    });
    const object = { ...claim, metadata, spec: { ...claim.spec, volumeName } };
    const updated = await this.deps.api.update(PERSISTENT_VOLUME_CLAIMS, { namespace, name, object }, options);
    this.claims.wrote(updated);
    return updated;
  }

  private async putVolume(object: PersistentVolume, options: Abortable): Promise<PersistentVolume> {
    const { name = "" } = object.metadata;
    const updated = await this.deps.api.update(PERSISTENT_VOLUMES, { name, object }, options);
    this.volumes.wrote(updated);
    return updated;
  }
}

function withAnnotations(metadata: ObjectMeta, added: Readonly<Record<string, string>>): ObjectMeta {
  return { ...metadata, annotations: { ...metadata.annotations, ...added } };
}
