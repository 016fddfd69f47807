import type { Abortable } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import { messageOf } from "../../lib/errors.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Live } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import type { CollectedImages, ImageRemoveReason, ReportedFilesystem } from "../../model/image-report.ts";
import type { GuardedImages } from "./guarded-images.ts";
import { heldMeanwhile, type ImageFactsDeps } from "./image-facts.ts";
import { type ImageGcPlan, type ImageGcPolicy, type ImageVerdict, wantedBytes } from "./plan-image-gc.ts";

/** Bytes of an error that are kept, and of all errors of a collection. */
const ERROR_BYTES = 512;
export const ERRORS_BYTES = 2048;

/** A plan, and what it was made from. */
export interface Planned {
  readonly plan: ImageGcPlan;
  readonly filesystem: ReportedFilesystem | undefined;
  readonly containerFilesystem: ReportedFilesystem | undefined;
  /** Why the filesystems could not be measured. */
  readonly failure?: unknown;
  /** The number of pulls when it was made. */
  readonly pullCount: number;
}

/** What a collection freed. */
export interface Freed {
  /** By the sizes that the runtime reports. */
  readonly bytes: number;
  readonly filesystem: ReportedFilesystem | undefined;
  readonly errors: readonly string[];
}

export interface ImageRemoverDeps extends ImageFactsDeps {
  readonly guard: Pick<GuardedImages, "remove" | "pullCount" | "isPulledSince">;
  readonly records: { delete(key: string): void };
  readonly log: Logger;
  /** An image was removed; for metrics. */
  removed?(reason: ImageRemoveReason, bytes: number): void;
}

/** Removes the images of a plan, one at a time. */
export class ImageRemover {
  /** Each image that was removed, by id. */
  readonly removals = new Listeners<string>();
  /** Since the agent started. */
  collected: CollectedImages = { images: 0, bytes: 0 };

  constructor(
    private readonly deps: ImageRemoverDeps,
    private readonly policy: Live<ImageGcPolicy>,
  ) {}

  /**
   * Removes in the order of the plan until enough is freed: by the sizes that the runtime reports, which count layers
   * twice that images share, or by what the disk shows, whichever comes first. A failed removal is made up for by the
   * next image.
   */
  async remove({ plan, pullCount, ...measured }: Planned, options: Abortable): Promise<Freed> {
    const errors: string[] = [];
    let bytes = 0;
    let { filesystem } = measured;
    for (const verdict of plan.images) {
      const reason = verdict.remove ?? (verdict.keep === "spare" ? "space" : undefined);
      if (reason === undefined) break;
      const hasRoom = plan.bytesToFree !== Number.POSITIVE_INFINITY && this.hasRoom(filesystem);
      if (reason === "space" && (bytes >= plan.bytesToFree || hasRoom)) break;
      if (this.isNeededMeanwhile(verdict, pullCount)) continue;
      try {
        await this.removeOne(verdict, reason, options);
        bytes += verdict.image.sizeBytes;
        if (filesystem !== undefined) filesystem = await this.measureAgain(filesystem);
      } catch (error) {
        options.signal.throwIfAborted();
        errors.push(clip(messageOf(error), ERROR_BYTES));
      }
    }
    return { bytes, filesystem, errors };
  }

  /** True if a pod or a pull needs the image since the plan was made. */
  private isNeededMeanwhile({ image }: ImageVerdict, pullCount: number): boolean {
    return heldMeanwhile(this.deps, image) !== undefined || this.deps.guard.isPulledSince(image, pullCount);
  }

  private async removeOne(
    { key, image }: ImageVerdict,
    reason: ImageRemoveReason,
    { signal }: Abortable,
  ): Promise<void> {
    const { id, sizeBytes, tags } = image;
    this.deps.log.info("Removing image to free bytes", { imageID: id, image: tags[0], bytes: sizeBytes, reason });
    const isGone = await this.deps.guard.remove(image, { signal });
    this.deps.records.delete(key);
    this.collected = { images: this.collected.images + 1, bytes: this.collected.bytes + sizeBytes };
    this.deps.removed?.(reason, sizeBytes);
    // Who hears of it removes what is recorded of the image, such as who may use it.
    if (isGone) this.removals.call(id);
  }

  private async measureAgain(before: ReportedFilesystem): Promise<ReportedFilesystem> {
    const { mountpoint } = before;
    return { mountpoint, ...(await this.deps.statFilesystem(mountpoint)) };
  }

  /** True if the disk shows that the low threshold is reached. */
  hasRoom(filesystem: ReportedFilesystem | undefined): boolean {
    if (filesystem === undefined) return false;
    return filesystem.availableBytes >= wantedBytes(filesystem.capacityBytes, this.policy.current);
  }
}

/** Throws if images could not be removed, in the words of Kubernetes. */
export function rejectErrors({ bytesToFree }: ImageGcPlan, { bytes, errors }: Freed): void {
  if (errors.length === 0) return;
  const wanted = Number.isFinite(bytesToFree) ? `${bytesToFree} bytes` : "all unused images";
  const text = clip([...new Set(errors)].join(", "), ERRORS_BYTES);
  throw new Error(`wanted to free ${wanted}, but freed ${bytes} bytes space with errors in image deletion: ${text}`);
}
