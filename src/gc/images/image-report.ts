import type { CollectedImages, ImageReport, ReportedFilesystem, ReportedImage } from "../../model/image-report.ts";
import type { ImageGcPlan, ImageGcPolicy, ImageVerdict } from "./plan-image-gc.ts";

interface ReportFacts {
  readonly filesystem: ReportedFilesystem | undefined;
  readonly containerFilesystem: ReportedFilesystem | undefined;
  readonly collected: CollectedImages;
  readonly policy: ImageGcPolicy;
  readonly now: number;
}

/** Returns a plan in the words of `kubelet images`. Pure. */
export function imageReport(plan: ImageGcPlan, facts: ReportFacts): ImageReport {
  const { filesystem, containerFilesystem, collected, policy, now } = facts;
  return {
    images: plan.images.map((verdict) => reportedImage(verdict, now)),
    ...(filesystem && { imageFilesystem: filesystem }),
    ...(containerFilesystem && { containerFilesystem }),
    ...(plan.usagePercent !== undefined && { usagePercent: plan.usagePercent }),
    highThresholdPercent: policy.highPercent,
    lowThresholdPercent: policy.lowPercent,
    minimumAgeMs: policy.minAgeMs,
    maximumAgeMs: policy.maxAgeMs,
    bytesToFree: plan.bytesToFree,
    collected,
  };
}

function reportedImage({ image, remove, keep, by, lastUsed, firstDetected }: ImageVerdict, now: number): ReportedImage {
  return {
    id: image.id,
    names: image.tags.length > 0 ? image.tags : image.digests,
    ...(image.runtimeHandler && { runtimeHandler: image.runtimeHandler }),
    sizeBytes: image.sizeBytes,
    ...(remove && { remove }),
    ...(keep && { keep }),
    ...(by && { by }),
    ...(keep !== "inUse" && { unusedMs: now - (lastUsed ?? firstDetected) }),
  };
}
