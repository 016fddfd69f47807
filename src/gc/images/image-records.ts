import type { RuntimeImage } from "../../adapters/runtime/port.ts";
import type { ImageHold, ImageRecord } from "./plan-image-gc.ts";

/**
 * When each image was detected and last used, since the agent started. Nothing of it is persisted, as in Kubernetes: a
 * restart makes every image young again, so that no removal follows from what was not seen.
 */
export class ImageRecords {
  private records = new Map<string, ImageRecord>();

  /** Takes over a list of the runtime; those that are in use are used now. Returns the records in the order of the list. */
  detect(
    images: readonly RuntimeImage[],
    { keyOf, holds, now }: { keyOf(image: RuntimeImage): string; holds: ReadonlyMap<string, ImageHold>; now: number },
  ): readonly ImageRecord[] {
    const next = new Map<string, ImageRecord>();
    for (const image of images) {
      const key = keyOf(image);
      const known = this.records.get(key);
      const isUsed = holds.get(key)?.keep === "inUse";
      next.set(key, {
        key,
        image,
        firstDetected: known?.firstDetected ?? now,
        lastUsed: isUsed ? now : known?.lastUsed,
      });
    }
    this.records = next;
    return [...next.values()];
  }

  delete(key: string): void {
    this.records.delete(key);
  }
}
