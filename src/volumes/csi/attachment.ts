import { type Abortable, AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Live, LiveValue } from "../../lib/live.ts";
import type { VolumeAttachment } from "../../model/generated/types.ts";
import type { ObjectSource } from "../../model/object-source.ts";
import type { VolumeMetadata } from "../kind.ts";
import { uniqueName } from "./volume.ts";

/** How long a mount waits until the node's status names its volume as in use, in milliseconds. */
const REPORT_LIMIT_MS = 10_000;

type Texts = Readonly<Record<string, string>>;

export interface AttachedVolumesDeps {
  readonly clock: Clock;
  /**
   * The volumes that the node's status on the API server names as in use. The attach controller detaches only what is
   * not among them, so nothing is mounted before it is.
   */
  readonly reported: Live<readonly string[]>;
}

/** The attachable volumes of the node: what is in use, and whether the attach controller has attached it. */
export class AttachedVolumes {
  private readonly names = new Set<string>();
  private readonly published = new LiveValue<readonly string[] | undefined>(undefined);
  private isRestored = false;
  /** Unmounted before `restore`, which may have been told of them. */
  private readonly gone = new Set<string>();

  constructor(private readonly deps: AttachedVolumesDeps) {}

  /**
   * The names for `volumesInUse` of the node's status: set before a volume is mounted, until it is unmounted. Undefined
   * before `restore`: an empty list would allow to detach what an earlier agent left mounted.
   */
  get inUse(): Live<readonly string[] | undefined> {
    return this.published;
  }

  /** Takes over the volumes that an earlier agent left staged. */
  restore(staged: readonly VolumeMetadata[]): void {
    this.isRestored = true;
    const persistent = staged.filter(({ volumeLifecycleMode }) => volumeLifecycleMode !== "Ephemeral");
    for (const name of persistent.map(uniqueName)) if (!this.gone.has(name)) this.names.add(name);
    this.gone.clear();
    this.publish();
  }

  /** Resolves to what the attachment tells drivers once the volume is in use and attached; rejects while it is not. */
  async wait(metadata: VolumeMetadata, objects: ObjectSource, options: Abortable): Promise<Texts> {
    const name = uniqueName(metadata);
    this.add(name);
    await this.untilReported(name, options);
    return this.context(metadata, objects, options);
  }

  /** What the attachment tells drivers. */
  async context(metadata: VolumeMetadata, objects: ObjectSource, options: Abortable): Promise<Texts> {
    const { attachmentID: id = "", volumeHandle: handle = "" } = metadata;
    const found = await objects.get({ kind: "VolumeAttachment", namespace: "", name: id }, options);
    return attachedContext(found, { id, handle });
  }

  /** The volume is no longer mounted anywhere on this node. */
  remove(metadata: VolumeMetadata): void {
    const name = uniqueName(metadata);
    if (!this.isRestored) this.gone.add(name);
    if (this.names.delete(name)) this.publish();
  }

  private add(name: string): void {
    this.gone.delete(name);
    if (this.names.has(name)) return;
    this.names.add(name);
    this.publish();
  }

  private publish(): void {
    if (this.isRestored) this.published.set([...this.names].sort());
  }

  private async untilReported(name: string, { signal }: Abortable): Promise<void> {
    const { reported, clock } = this.deps;
    if (reported.current.includes(name)) return;
    const scope = new AbortScope([signal]);
    try {
      await new Promise<void>((resolve, reject) => {
        const late = clock.after(REPORT_LIMIT_MS, () => reject(new Error(NOT_IN_USE)));
        scope.signal.addEventListener("abort", () => {
          late.cancel();
          if (signal.aborted) reject(signal.reason as Error); // reason: an abort of ours always has an Error
        });
        reported.onChange((names) => names.includes(name) && resolve(), scope);
      });
    } finally {
      scope.abort();
      scope.dispose();
    }
  }
}

/** The words of Kubernetes. */
const NOT_IN_USE = "Volume has not been added to the list of VolumesInUse in the node's volume status";

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
