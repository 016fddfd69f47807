import type {
  ImageFilesystems,
  ImagePort,
  ImagePull,
  PullProgress,
  RunningPull,
  RuntimeImage,
} from "../../adapters/runtime/port.ts";
import type { Abortable } from "../../lib/abort.ts";
import { ImageIndex } from "./image-index.ts";

/**
 * The image side of the runtime for those who pull: an image that is being removed is not reported as present, one that
 * is being pulled is not removed, and the collector hears of each pull.
 */
export class GuardedImages implements ImagePort {
  /** Pulls under way, by name; several at once for pods with different credentials. */
  private readonly pulls = new Map<string, number>();
  /** When images were pulled, counted in pulls, by the reference that the runtime gave them. */
  private readonly pulledAt = new Map<string, number>();
  private removal: { readonly of: ImageIndex; readonly ended: Promise<void> } | undefined;
  /** The number of pulls that succeeded. */
  pullCount = 0;
  /** Called after each pull that succeeded, with the reference that the runtime gave the image. */
  onPulled: (ref: string) => void = () => undefined;

  constructor(private readonly images: ImagePort) {}

  /** Names of the images that are being pulled. */
  get pulling(): readonly string[] {
    return [...this.pulls.keys()];
  }

  /** True if the image was pulled when or after this was the number of pulls: it may have names that no list had yet. */
  isPulledSince({ id, digests }: RuntimeImage, pullCount: number): boolean {
    return [id, ...digests].some((ref) => (this.pulledAt.get(ref) ?? 0) > pullCount);
  }

  /**
   * Removes an image; until it is gone nobody inspects or pulls it by its names. One at a time: others wait for their
   * turn. Resolves to false if a pull by another name has brought it back.
   */
  async remove(image: RuntimeImage, { signal }: Abortable): Promise<boolean> {
    while (this.removal !== undefined) await this.removal.ended;
    const began = this.pullCount;
    const removal = this.images.removeImage(image.id, { signal, runtimeHandler: image.runtimeHandler });
    const ended = removal.then(
      () => undefined,
      () => undefined,
    );
    this.removal = { of: new ImageIndex([image], () => ""), ended };
    try {
      await removal;
      // A pull by another name may have brought the same image back meanwhile.
      if (this.isPulledSince(image, began)) return false;
      for (const ref of [image.id, ...image.digests]) this.pulledAt.delete(ref);
      return true;
    } finally {
      this.removal = undefined;
    }
  }

  async imageStatus(image: string, options: Abortable): Promise<RuntimeImage | undefined> {
    await this.removalOf(image);
    return this.images.imageStatus(image, options);
  }

  async pullImage(image: string, request: ImagePull, options: Abortable): Promise<string> {
    this.pulls.set(image, (this.pulls.get(image) ?? 0) + 1);
    try {
      await this.removalOf(image);
      const ref = await this.images.pullImage(image, request, options);
      this.pulledAt.set(ref, ++this.pullCount);
      this.onPulled(ref);
      return ref;
    } finally {
      const left = (this.pulls.get(image) ?? 1) - 1;
      if (left > 0) this.pulls.set(image, left);
      else this.pulls.delete(image);
    }
  }

  pullProgress(
    pulls: readonly RunningPull[],
    options: Abortable,
  ): Promise<ReadonlyMap<string, PullProgress> | undefined> {
    return this.images.pullProgress(pulls, options);
  }

  removeImage(image: string, options: Parameters<ImagePort["removeImage"]>[1]): Promise<void> {
    return this.images.removeImage(image, options);
  }

  listImages(options: Abortable): Promise<readonly RuntimeImage[]> {
    return this.images.listImages(options);
  }

  imageFilesystems(options: Abortable): Promise<ImageFilesystems> {
    return this.images.imageFilesystems(options);
  }

  /** Resolves when the image is not being removed: others do not wait for a removal that takes long. */
  private async removalOf(image: string): Promise<void> {
    const { removal } = this;
    if (removal !== undefined && removal.of.find(image).length > 0) await removal.ended;
  }
}
