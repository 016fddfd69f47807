import type { Abortable } from "../../lib/abort.ts";
import type { Live } from "../../lib/live.ts";
import type { VolumeAttachment } from "../../model/generated/types.ts";
import type { ObjectSource } from "../../model/object-source.ts";
import type { Stage, VolumeMetadata } from "../kind.ts";
import { AttachLimitError, VolumePendingError } from "../volume-error.ts";
import {
  NOT_ATTACHED,
  type UnnamedStage,
  VolumesInUse,
  type VolumesInUseDeps,
  type VolumeUse,
} from "../volumes-in-use.ts";
import { uniqueName } from "./volume.ts";

/** The code of gRPC that an attacher answers with when the node is full. */
const RESOURCE_EXHAUSTED = 8;

type Texts = Readonly<Record<string, string>>;

export interface AttachedVolumesDeps extends VolumesInUseDeps {
  /** A volume of the driver could not be attached for lack of room on the node. */
  exhausted?(driver: string): void;
}

/** The attachable volumes of the node: what is in use, and whether the attach controller has attached it. */
export class AttachedVolumes {
  private readonly used: VolumesInUse;

  constructor(private readonly deps: AttachedVolumesDeps) {
    this.used = new VolumesInUse(deps);
  }

  /** The names for `volumesInUse` of the node's status; undefined before `restore`. */
  get inUse(): Live<readonly string[] | undefined> {
    return this.used.live;
  }

  /** Takes over the volumes that an earlier agent left staged, and stages of which it is not known what they use. */
  restore(staged: readonly Stage[], rest?: Abortable & { readonly unnamed: readonly UnnamedStage[] }): void {
    this.used.restore(staged.map(useOf), rest);
  }

  /** Resolves to what the attachment tells drivers once the volume is in use and attached; rejects while it is not. */
  async wait(stage: Stage, objects: ObjectSource, options: Abortable): Promise<Texts> {
    const use = useOf(stage);
    const { metadata } = stage;
    await this.used.use(use, options);
    await this.used.attached(use.name, options).catch(async (error: unknown) => {
      throw options.signal.aborted ? error : ((await this.failedAttach(metadata, objects, options)) ?? error);
    });
    return this.context(metadata, objects, options);
  }

  /** What the attachment tells drivers. */
  async context(metadata: VolumeMetadata, objects: ObjectSource, options: Abortable): Promise<Texts> {
    const { attachmentID: id = "", volumeHandle: handle = "" } = metadata;
    const found = await objects.get({ kind: "VolumeAttachment", namespace: "", name: id }, options);
    return attachedContext(found, { id, handle });
  }

  /** The volume is no longer staged there. */
  remove(stage: Stage): void {
    this.used.remove(useOf(stage));
  }

  /** The stage was removed, and what it was for is not known. */
  discarded(directory: string): void {
    this.used.discarded(directory);
  }

  /** Why the volume is not attached, if its attachment says so: the attach controller has reported it to the pod. */
  private async failedAttach(
    { attachmentID: name = "", driverName = "" }: VolumeMetadata,
    objects: ObjectSource,
    options: Abortable,
  ): Promise<Error | undefined> {
    const found = await objects.get({ kind: "VolumeAttachment", namespace: "", name }, options);
    const { message, errorCode } = found?.status?.attachError ?? {};
    if (errorCode === RESOURCE_EXHAUSTED) {
      const object = await objects.get({ kind: "CSIDriver", namespace: "", name: driverName }, options);
      // A driver that does not keep its limit up to date does not decide where pods run.
      const isKept = (object?.spec.nodeAllocatableUpdatePeriodSeconds ?? 0) > 0;
      if (isKept) this.deps.exhausted?.(driverName);
      if (isKept) return new AttachLimitError(`${NOT_ATTACHED}: ${message ?? ""}`);
    }
    return message === undefined ? undefined : new VolumePendingError(`${NOT_ATTACHED}: ${message}`);
  }
}

function useOf({ directory, metadata }: Stage): VolumeUse {
  return { name: uniqueName(metadata), stage: directory };
}

function attachedContext(
  attachment: VolumeAttachment | undefined,
  { id, handle }: { readonly id: string; readonly handle: string },
): Texts {
  if (attachment === undefined) throw new Error(`volume ${handle} has no volume attachment ${id}`);
  const { metadata, status } = attachment;
  if (metadata.deletionTimestamp !== undefined) throw new Error("volume attachment is being deleted");
  if (status?.attached === true) return status.attachmentMetadata ?? {};
  const failure = status?.attachError?.message;
  throw new Error(failure ?? `volume ${handle} is not attached for volume attachment ${id}`);
}
