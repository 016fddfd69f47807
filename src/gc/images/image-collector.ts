import { type Abortable, isAborted } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import { messageOf } from "../../lib/errors.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Live } from "../../lib/live.ts";
import { Wakes } from "../../lib/wakes.ts";
import type { ImageReport } from "../../model/image-report.ts";
import { listImages, measureFilesystems } from "./image-facts.ts";
import { ImageRecords } from "./image-records.ts";
import { ERRORS_BYTES, ImageRemover, type ImageRemoverDeps, type Planned, rejectErrors } from "./image-remover.ts";
import { imageReport } from "./image-report.ts";
import { type ImageGcPlan, type ImageGcPolicy, planImageGc, usageOf } from "./plan-image-gc.ts";
import { insufficientSpace } from "./space-message.ts";

/** The longest time between two passes in milliseconds, as in Kubernetes. */
const PERIOD_MS = 5 * 60_000;
/** The shortest time between two passes, however many pulls there are. */
const SHORTEST_MS = 5000;
/** Pods that were not read yet may need any image; a source that stays unavailable this long no longer counts. */
const SOURCES_MS = 10 * 60_000;
/** When the sizes of removed images promised more than the disk shows, it is measured again this soon. */
const RECHECK_MS = 30_000;

export interface ImageCollectorDeps extends Omit<ImageRemoverDeps, "records"> {
  /** True once every source has delivered all its pods. */
  isComplete(): boolean;
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

/**
 * Removes unused images when the image filesystem is too full, or when they are too old. Passes are five minutes apart,
 * sooner after a pull and when an image that is needed reaches the minimum age. One pass at a time, one removal at a time.
 */
export class ImageCollector {
  private readonly records = new ImageRecords();
  private readonly wakes: Wakes;
  private readonly turns = new KeyedMutex();
  private readonly remover: ImageRemover;
  private readonly startedAt: number;
  private hasFailed = false;

  constructor(
    private readonly deps: ImageCollectorDeps,
    private readonly policy: Live<ImageGcPolicy>,
  ) {
    this.wakes = new Wakes(deps.clock);
    this.remover = new ImageRemover({ ...deps, records: this.records }, policy);
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
    this.remover.removals.add(fn, options);
  }

  /** Removes every unused image that is not too young, as under disk pressure. Resolves to the bytes of the removed images. */
  deleteUnusedImages(options: Abortable): Promise<number> {
    this.deps.log.info("Deleting unused images");
    return this.turns.run(
      "images",
      async () => {
        const planned = await this.plan(options, { everything: true });
        if (this.mustWait()) return 0;
        const freed = await this.remover.remove(planned, options);
        rejectErrors(planned.plan, freed);
        return freed.bytes;
      },
      options,
    );
  }

  /** The images of the node, and what would become of each now. */
  async report(options: Abortable): Promise<ImageReport> {
    const { plan, filesystem, containerFilesystem } = await this.plan(options);
    const { remover, policy, deps } = this;
    const { collected } = remover;
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
    const freed = await this.remover.remove(planned, options);
    rejectErrors(plan, freed);
    if (failure !== undefined) throw failure;
    if (filesystem === undefined && this.policy.current.highPercent < 100) {
      throw new Error("measure image filesystem: the runtime reports none");
    }
    if (filesystem?.capacityBytes === 0) this.reject("InvalidDiskCapacity", "invalid capacity 0 on image filesystem");
    const isEnough = freed.bytes + youngBytes(plan) >= plan.bytesToFree || this.remover.hasRoom(freed.filesystem);
    if (!isEnough && filesystem !== undefined) {
      this.reject("FreeDiskSpaceFailed", insufficientSpace(filesystem, usageOf(filesystem), freed.bytes));
    }
    const isUncertain = plan.bytesToFree > 0 && !this.remover.hasRoom(freed.filesystem);
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
    const plan = planImageGc(facts, this.policy.current, now);
    return { plan, filesystem, containerFilesystem, pullCount, ...rest };
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
