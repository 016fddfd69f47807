import type { ImagePort, RuntimeImage, RuntimePort } from "../../adapters/runtime/port.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { ReportedFilesystem } from "../../model/image-report.ts";
import { type HeldReference, type ImageUsers, imageHolds, imageKey } from "./image-holds.ts";
import { parseAhead } from "./image-index.ts";
import type { ImageHold } from "./plan-image-gc.ts";

/** Images whose names are parsed at a time: everything else runs in between. */
const CHUNK = 100;

/** What the runtime, the pods and the disk are asked for. */
export interface ImageFactsDeps {
  readonly images: Pick<ImagePort, "listImages" | "imageFilesystems">;
  readonly runtime: Pick<RuntimePort, "listContainers" | "sandboxImage">;
  readonly clock: Clock;
  /** Measures the filesystem at a path of the runtime. */
  statFilesystem(path: string): Promise<Omit<ReportedFilesystem, "mountpoint">>;
  /** Images that pods name which may still start. */
  wanted(): readonly HeldReference[];
  /** Image volumes of containers. */
  mounted(): readonly HeldReference[];
  pulling(): readonly string[];
  /** Returns a test for images that no registry is known to have, if those are to be kept. */
  localImages(): Promise<(image: RuntimeImage) => boolean>;
  /** Whether copies of an image for different runtime handlers are told apart. */
  byHandler(): boolean;
}

/** The images of the runtime and what holds them. */
export interface ListedImages {
  readonly images: readonly RuntimeImage[];
  readonly holds: ReadonlyMap<string, ImageHold>;
  keyOf(image: RuntimeImage): string;
}

/** Lists images, and after them the containers that use them: one that is created meanwhile belongs to a wanted pod. */
export async function listImages(deps: ImageFactsDeps, options: Abortable): Promise<ListedImages> {
  const byHandler = deps.byHandler();
  const images = await deps.images.listImages(options);
  for (let first = CHUNK; first < images.length; first += CHUNK) {
    parseAhead(images.slice(first - CHUNK, first).flatMap(({ tags, digests }) => [...tags, ...digests]));
    await deps.clock.sleep(0, options);
  }
  const [containers, sandboxImage, isLocal] = await Promise.all([
    deps.runtime.listContainers({}, options),
    deps.runtime.sandboxImage(options),
    deps.localImages(),
  ]);
  const users: ImageUsers = { containers, sandboxImage, isLocal, ...awaited(deps), mounted: deps.mounted() };
  return {
    images,
    holds: imageHolds(images, users, byHandler),
    keyOf: (image) => imageKey(image, byHandler),
  };
}

/** Returns why an image must stay by what is known without asking anybody: it may have changed since the list. */
export function heldMeanwhile(deps: ImageFactsDeps, image: RuntimeImage): ImageHold | undefined {
  const byHandler = deps.byHandler();
  const users: ImageUsers = {
    containers: [],
    mounted: [],
    sandboxImage: undefined,
    isLocal: () => false,
    ...awaited(deps),
  };
  return imageHolds([image], users, byHandler).get(imageKey(image, byHandler));
}

function awaited(deps: ImageFactsDeps): Pick<ImageUsers, "wanted" | "pulling"> {
  return { wanted: deps.wanted(), pulling: deps.pulling() };
}

/** The filesystem of images, and that of writable layers if it is another one; undefined if the runtime reports none. */
export async function measureFilesystems(
  deps: Pick<ImageFactsDeps, "images" | "statFilesystem">,
  options: Abortable,
): Promise<{ images: ReportedFilesystem | undefined; containers: ReportedFilesystem | undefined }> {
  const { images, containers } = await deps.images.imageFilesystems(options);
  const ofImages = images[0]?.mountpoint;
  const ofContainers = containers.find(({ mountpoint }) => mountpoint !== ofImages)?.mountpoint;
  return {
    images: await measure(deps, ofImages),
    containers: await measure(deps, ofContainers),
  };
}

async function measure(
  deps: Pick<ImageFactsDeps, "statFilesystem">,
  mountpoint: string | undefined,
): Promise<ReportedFilesystem | undefined> {
  if (mountpoint === undefined || mountpoint === "") return undefined;
  return { mountpoint, ...(await deps.statFilesystem(mountpoint)) };
}
