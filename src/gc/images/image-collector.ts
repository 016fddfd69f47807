import { type Abortable, isAborted } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Live } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { Wakes } from "../../lib/wakes.ts";
import type { CollectedImages, ImageRemoveReason, ImageReport, ReportedFilesystem } from "../../model/image-report.ts";
import type { GuardedImages } from "./guarded-images.ts";
import { heldMeanwhile, type ImageFactsDeps, listImages, measureFilesystems } from "./image-facts.ts";
import { ImageRecords } from "./image-records.ts";
import { imageReport } from "./image-report.ts";
import {
  type ImageGcPlan,
  type ImageGcPolicy,
  type ImageVerdict,
  planImageGc,
  usageOf,
  wantedBytes,
} from "./plan-image-gc.ts";
import { insufficientSpace } from "./space-message.ts";

/** The longest time between two passes in milliseconds, as in Kubernetes. */
const PERIOD_MS = 5 * 60_000;
/** The shortest time between two passes, however many pulls there are. */
const SHORTEST_MS = 5000;
/** Pods that were not read yet may need any image; a source that stays unavailable this long no longer counts. */
const SOURCES_MS = 10 * 60_000;
/** When the sizes of removed images promised more than the disk shows, it is measured again this soon. */
const RECHECK_MS = 30_000;
/** Bytes of an error that are kept, and of all errors of a pass. */
const ERROR_BYTES = 512;
const ERRORS_BYTES = 2048;

export interface ImageCollectorDeps extends ImageFactsDeps {
  readonly guard: Pick<GuardedImages, "remove" | "pullCount" | "isPulledSince">;
  /** True once every source has delivered its pods. */
  isComplete(): boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
  /** An image was removed; for metrics. */
  removed?(reason: ImageRemoveReason, bytes: number): void;
}

/** A plan, and what it was made from. */
interface Planned {
  readonly plan: ImageGcPlan;
  readonly filesystem: ReportedFilesystem | undefined;
  readonly containerFilesystem: ReportedFilesystem | undefined;
  /** Why the filesystems could not be measured. */
  readonly failure?: unknown;
  /** The number of pulls when it was made. */
  readonly pullCount: number;
}

interface Freed {
  readonly bytes: number;
  readonly filesystem: ReportedFilesystem | undefined;
  readonly errors: readonly string[];
}

/**
 * Removes unused images when the image filesystem is too full, or when they are too old. Passes are five minutes apart,
 * sooner after a pull and when an image reaches its age. One pass at a time, one removal at a time.
 */
export class ImageCollector {
  private readonly records = new ImageRecords();
  private readonly wakes: Wakes;
  private readonly turns = new KeyedMutex();
  private readonly removals = new Listeners<string>();
  private readonly startedAt: number;
  private collected: CollectedImages = { images: 0, bytes: 0 };
  private hasFailed = false;

  constructor(
    private readonly deps: ImageCollectorDeps,
    private readonly policy: Live<ImageGcPolicy>,
  ) {
    this.wakes = new Wakes(deps.clock);
    this.startedAt = deps.clock.now().mono;
  }

  /** Collects until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.deps;
    // The start of the pods comes first.
    await clock.sleep(SHORTEST_MS, { signal }).catch(() => undefined);
    this.policy.onChange(() => this.wakes.wake(), { signal });
    while (!signal.aborted) {
      this.wakes.clear();
      const began = clock.now().mono;
      const afterMs = await this.pass(signal);
      await this.wakes.sleep(Math.min(PERIOD_MS, Math.max(SHORTEST_MS, afterMs)), signal);
      const restMs = began + SHORTEST_MS - clock.now().mono;
      if (restMs > 0) await clock.sleep(restMs, { signal }).catch(() => undefined);
    }
  }

  /** The disk may be fuller than before: an image was pulled. */
  wake(): void {
    this.wakes.wake();
  }

  /** Calls `fn` with the id of each image that was removed, until the signal aborts. */
  onRemoved(fn: (imageId: string) => void, options: Abortable): void {
    this.removals.add(fn, options);
  }

  /** Removes every unused image that is not too young, as under disk pressure. Resolves to the bytes of the removed images. */
  deleteUnusedImages(options: Abortable): Promise<number> {
    this.deps.log.info("Deleting unused images");
    return this.turns.run(
      "images",
      async () => {
        const planned = await this.plan(options, { everything: true });
        if (this.mustWait()) return 0;
        const freed = await this.remove(planned, options);
        this.rejectErrors(planned.plan, freed);
        return freed.bytes;
      },
      options,
    );
  }

  /** The images of the node, and what would become of each now. */
  async report(options: Abortable): Promise<ImageReport> {
    const { plan, filesystem, containerFilesystem } = await this.plan(options);
    const { collected, policy, deps } = this;
    const now = deps.clock.now().mono;
    return imageReport(plan, { filesystem, containerFilesystem, collected, policy: policy.current, now });
  }

  /** One pass. Answers the milliseconds to the next. */
  private async pass(signal: AbortSignal): Promise<number> {
    const { log } = this.deps;
    try {
      const afterMs = await this.turns.run("images", () => this.collect({ signal }), { signal });
      if (this.hasFailed) log.info("Image garbage collection succeeded");
      this.hasFailed = false;
      return afterMs;
    } catch (error) {
      if (isAborted(error, signal)) return PERIOD_MS;
      if (this.hasFailed) {
        log.error("Image garbage collection failed multiple times in a row", error);
        this.deps.event("Warning", "ImageGCFailed", clip(messageOf(error), ERRORS_BYTES));
      } else log.warn("Image garbage collection failed once", { error: messageOf(error) });
      this.hasFailed = true;
      return PERIOD_MS;
    }
  }

  private async collect(options: Abortable): Promise<number> {
    const planned = await this.plan(options);
    if (this.mustWait()) return SHORTEST_MS;
    const { plan, filesystem, failure } = planned;
    const freed = await this.remove(planned, options);
    this.rejectErrors(plan, freed);
    if (failure !== undefined) throw failure;
    if (filesystem === undefined && this.policy.current.highPercent < 100) {
      throw new Error("measure image filesystem: the runtime reports none");
    }
    if (filesystem?.capacityBytes === 0) this.reject("InvalidDiskCapacity", "invalid capacity 0 on image filesystem");
    const isEnough = freed.bytes + youngBytes(plan) >= plan.bytesToFree || this.hasRoom(freed.filesystem);
    if (!isEnough && filesystem !== undefined) {
      this.reject("FreeDiskSpaceFailed", insufficientSpace(filesystem, usageOf(filesystem), freed.bytes));
    }
    const isUncertain = plan.bytesToFree > 0 && !this.hasRoom(freed.filesystem);
    return Math.min(plan.afterMs ?? PERIOD_MS, isUncertain ? RECHECK_MS : PERIOD_MS);
  }

  /** True as long as it is not known which images the pods need. */
  private mustWait(): boolean {
    return !this.deps.isComplete() && this.deps.clock.now().mono - this.startedAt < SOURCES_MS;
  }

  private async plan(options: Abortable, { everything = false }: { everything?: boolean } = {}): Promise<Planned> {
    const { pullCount } = this.deps.guard;
    const { images, holds, keyOf } = await listImages(this.deps, options);
    const measured = await measureFilesystems(this.deps, options).catch((failure: unknown) => {
      options.signal.throwIfAborted();
      return { images: undefined, containers: undefined, failure };
    });
    const { images: filesystem, containers: containerFilesystem, ...rest } = measured;
    const now = this.deps.clock.now().mono;
    const records = this.records.detect(images, { keyOf, holds, now });
    const facts = { images: records, holds, filesystem, startedAt: this.startedAt, everything };
    return { plan: planImageGc(facts, this.policy.current, now), filesystem, containerFilesystem, pullCount, ...rest };
  }

  /**
   * Removes in the order of the plan until enough is freed: by the sizes that the runtime reports, which count layers
   * twice that images share, or by what the disk shows, whichever comes first. A failed removal is made up for by the
   * next image.
   */
  private async remove({ plan, pullCount, ...measured }: Planned, options: Abortable): Promise<Freed> {
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
    await this.deps.guard.remove(image, { signal });
    this.records.delete(key);
    this.collected = { images: this.collected.images + 1, bytes: this.collected.bytes + sizeBytes };
    this.deps.removed?.(reason, sizeBytes);
    this.removals.call(id);
  }

  private async measureAgain(before: ReportedFilesystem): Promise<ReportedFilesystem> {
    const { mountpoint } = before;
    return { mountpoint, ...(await this.deps.statFilesystem(mountpoint)) };
  }

  /** True if the disk shows that the low threshold is reached. */
  private hasRoom(filesystem: ReportedFilesystem | undefined): boolean {
    if (filesystem === undefined) return false;
    return filesystem.availableBytes >= wantedBytes(filesystem.capacityBytes, this.policy.current);
  }

  private rejectErrors({ bytesToFree }: ImageGcPlan, { bytes, errors }: Freed): void {
    if (errors.length === 0) return;
    const wanted = Number.isFinite(bytesToFree) ? `${bytesToFree} bytes` : "all unused images";
    const text = clip([...new Set(errors)].join(", "), ERRORS_BYTES);
    throw new Error(`wanted to free ${wanted}, but freed ${bytes} bytes space with errors in image deletion: ${text}`);
  }

  private reject(reason: string, message: string): never {
    this.deps.event("Warning", reason, message);
    throw new Error(message);
  }
}

/** Bytes of images that may go soon: as long as they suffice, nothing has failed. */
function youngBytes({ images }: ImageGcPlan): number {
  return images.reduce((sum, { keep, image }) => sum + (keep === "young" ? image.sizeBytes : 0), 0);
}
