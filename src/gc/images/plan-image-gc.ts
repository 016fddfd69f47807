import type { RuntimeImage } from "../../adapters/runtime/port.ts";
import type { ImageKeepReason, ImageRemoveReason } from "../../model/image-report.ts";

/** When images are collected; `imageGCHighThresholdPercent` and its like. */
export interface ImageGcPolicy {
  /** Usage of the image filesystem from which on images are removed; 100 turns that off. */
  readonly highPercent: number;
  /** Usage down to which they are removed. */
  readonly lowPercent: number;
  /** Images that were detected less than this ago are kept. */
  readonly minAgeMs: number;
  /** Images that were unused for longer are removed whatever the usage is; 0 turns that off. */
  readonly maxAgeMs: number;
}

/** An image, and when the agent saw it; times are monotonic milliseconds. */
export interface ImageRecord {
  readonly key: string;
  readonly image: RuntimeImage;
  readonly firstDetected: number;
  /** Undefined if it was never seen used. */
  readonly lastUsed: number | undefined;
}

/** Why an image must stay, whatever the disk looks like. */
export interface ImageHold {
  readonly keep: Exclude<ImageKeepReason, "young" | "spare">;
  /** Who needs it. */
  readonly by?: string;
}

export interface ImageGcFacts {
  readonly images: readonly ImageRecord[];
  /** By the key of the image. */
  readonly holds: ReadonlyMap<string, ImageHold>;
  /** Undefined if it could not be measured: then nothing is removed for space. */
  readonly filesystem: { readonly capacityBytes: number; readonly availableBytes: number } | undefined;
  /** When the agent started: ages are known only from then on. */
  readonly startedAt: number;
  /** Everything that may be removed is, as under disk pressure; the minimum age counts. */
  readonly everything?: boolean;
}

export interface ImageVerdict extends ImageRecord {
  readonly remove?: ImageRemoveReason;
  readonly keep?: ImageKeepReason;
  readonly by?: string | undefined;
}

export interface ImageGcPlan {
  readonly usagePercent: number | undefined;
  /** 0 if the usage is below the high threshold. */
  readonly bytesToFree: number;
  /** Those that are removed, then those that are spare, in the order in which they go; then the others. */
  readonly images: readonly ImageVerdict[];
  /** When there will be more to remove for space. Ages are checked at the next interval, as in Kubernetes. */
  readonly afterMs?: number;
}

/** Returns which images are removed, in which order, and why each of the others is kept. Pure. */
export function planImageGc(facts: ImageGcFacts, policy: ImageGcPolicy, now: number): ImageGcPlan {
  const { images, holds, filesystem, startedAt, everything = false } = facts;
  const usagePercent = filesystem && usageOf(filesystem);
  const bytesToFree = everything ? Number.POSITIVE_INFINITY : missingBytes(filesystem, policy);
  const held = images.filter(({ key }) => holds.has(key)).map((record) => ({ ...record, ...holds.get(record.key) }));
  const candidates = images.filter(({ key }) => !holds.has(key)).sort(inRemovalOrder);

  let afterMs = Number.POSITIVE_INFINITY;
  const dueIn = (record: ImageRecord): number => outdatedIn(record, { startedAt, policy, now });
  const outdated = candidates.filter((record) => dueIn(record) < 0);
  const others = candidates.filter((record) => dueIn(record) >= 0);
  let freed = outdated.reduce((sum, { image }) => sum + image.sizeBytes, 0);
  const verdicts = others.map((record): ImageVerdict => {
    const youngMs = record.firstDetected + policy.minAgeMs - now;
    const isNeeded = freed < bytesToFree;
    if (youngMs > 0) {
      if (isNeeded) afterMs = Math.min(afterMs, youngMs);
      return { ...record, keep: "young" };
    }
    if (isNeeded) {
      freed += record.image.sizeBytes;
      return { ...record, remove: "space" };
    }
    return { ...record, keep: "spare" };
  });
  const rank = ({ remove, keep }: ImageVerdict): number => (remove !== undefined ? 0 : keep === "spare" ? 1 : 2);
  return {
    usagePercent,
    bytesToFree,
    images: [
      ...outdated.map((record) => ({ ...record, remove: "age" }) as const),
      ...verdicts.sort((a, b) => rank(a) - rank(b)),
      ...held,
    ],
    ...(Number.isFinite(afterMs) && { afterMs }),
  };
}

/** Percent of a filesystem that is used, rounded up as in Kubernetes. */
export function usageOf({ capacityBytes, availableBytes }: NonNullable<ImageGcFacts["filesystem"]>): number {
  if (capacityBytes <= 0) return 0;
  return 100 - Math.floor((Math.min(availableBytes, capacityBytes) * 100) / capacityBytes);
}

/** Returns the bytes that have to be available for the usage to be at the low threshold. */
export function wantedBytes(capacityBytes: number, { lowPercent }: ImageGcPolicy): number {
  return Math.floor((capacityBytes * (100 - lowPercent)) / 100);
}

/** The least recently used first, as in Kubernetes; of equals the one that was detected first, then the largest. */
function inRemovalOrder(a: ImageRecord, b: ImageRecord): number {
  const never = Number.NEGATIVE_INFINITY;
  const [usedA, usedB] = [a.lastUsed ?? never, b.lastUsed ?? never];
  if (usedA !== usedB) return usedA - usedB;
  return a.firstDetected - b.firstDetected || b.image.sizeBytes - a.image.sizeBytes || (a.key < b.key ? -1 : 1);
}

function missingBytes(filesystem: ImageGcFacts["filesystem"], policy: ImageGcPolicy): number {
  if (filesystem === undefined || filesystem.capacityBytes <= 0) return 0;
  if (policy.highPercent >= 100 || usageOf(filesystem) < policy.highPercent) return 0;
  return Math.max(0, wantedBytes(filesystem.capacityBytes, policy) - filesystem.availableBytes);
}

/**
 * Milliseconds until the image is older than the maximum age, negative once it is. An image that was never seen used
 * counts from when it was detected, and none is older than the agent.
 */
function outdatedIn(
  { firstDetected, lastUsed }: ImageRecord,
  { startedAt, policy, now }: { startedAt: number; policy: ImageGcPolicy; now: number },
): number {
  if (policy.maxAgeMs === 0) return Number.POSITIVE_INFINITY;
  return Math.max(startedAt, lastUsed ?? firstDetected) + policy.maxAgeMs - now;
}
