import type {
  ImageFilesystems,
  ImagePort,
  ImagePull,
  PullProgress,
  RunningPull,
  RuntimeImage,
} from "../../adapters/runtime/port.ts";
import type { Abortable } from "../../lib/abort.ts";

/**
 * The image side of the runtime for those who pull: an image that is being removed is not reported as present, one that
 * is being pulled is not removed, and the collector hears of each pull.
 */
export class GuardedImages implements ImagePort {
  /** Pulls under way, by name; several at once for pods with different credentials. */
  private readonly pulls = new Map<string, number>();
  private removal: Promise<void> | undefined;
  /** Called after each pull that succeeded, with the reference that the runtime gave the image. */
  onPulled: (ref: string) => void = () => undefined;

  constructor(private readonly images: ImagePort) {}

  /** Names of the images that are being pulled. */
  get pulling(): readonly string[] {
    return [...this.pulls.keys()];
  }

  /** Removes an image; until it is gone, nobody inspects or begins to pull one. One at a time. */
  async removeImage(image: string, options: Parameters<ImagePort["removeImage"]>[1]): Promise<void> {
    const removal = (this.removal ?? Promise.resolve()).then(() => this.images.removeImage(image, options));
    const ended = removal.then(
      () => undefined,
      () => undefined,
    );
    this.removal = ended;
    try {
      await removal;
    } finally {
      if (this.removal === ended) this.removal = undefined;
    }
  }

  async imageStatus(image: string, options: Abortable): Promise<RuntimeImage | undefined> {
    await this.removal;
    return this.images.imageStatus(image, options);
  }

  async pullImage(image: string, request: ImagePull, options: Abortable): Promise<string> {
    this.pulls.set(image, (this.pulls.get(image) ?? 0) + 1);
    try {
      await this.removal;
      const ref = await this.images.pullImage(image, request, options);
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

  listImages(options: Abortable): Promise<readonly RuntimeImage[]> {
    return this.images.listImages(options);
  }

  imageFilesystems(options: Abortable): Promise<ImageFilesystems> {
    return this.images.imageFilesystems(options);
  }
}
