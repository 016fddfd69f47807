import type { ContainerSummary, RuntimeImage } from "../../adapters/runtime/port.ts";
import type { Pod } from "../../model/generated/types.ts";
import { POD_NAME_LABEL, POD_NAMESPACE_LABEL } from "../../model/labels.ts";
import { allContainers } from "../../model/pod-facts.ts";
import { ImageIndex } from "./image-index.ts";
import type { ImageHold } from "./plan-image-gc.ts";

/** Images under this name are made by `kubelet up` itself. */
const OWN_PREFIX = "kubelet.local/";

/** A reference to an image, and who holds it. */
export interface HeldReference {
  readonly reference: string;
  readonly by: string;
}

/** Everything that needs an image, from the surest to the least. */
export interface ImageUsers {
  readonly containers: readonly Pick<
    ContainerSummary,
    "image" | "imageRef" | "imageId" | "imageHandler" | "labels" | "name"
  >[];
  /** Images that containers mount. */
  readonly mounted: readonly HeldReference[];
  /** Images that pods name which may still start. */
  readonly wanted: readonly HeldReference[];
  readonly pulling: readonly string[];
  /** What sandboxes are made from: without it no pod starts while its registry is unavailable. */
  readonly sandboxImage: string | undefined;
  /** True for an image that no registry is known to have, if those are to be kept. */
  isLocal(image: RuntimeImage): boolean;
}

/** Returns the key of an image: with `byHandler`, copies for different runtime handlers are different images. */
export function imageKey(
  { id, runtimeHandler = "" }: Pick<RuntimeImage, "id" | "runtimeHandler">,
  byHandler: boolean,
): string {
  return byHandler && runtimeHandler !== "" ? `${id},${runtimeHandler}` : id;
}

/** Returns the images that must stay, by key, each with its first reason. Pure. */
export function imageHolds(
  images: readonly RuntimeImage[],
  users: ImageUsers,
  byHandler: boolean,
): ReadonlyMap<string, ImageHold> {
  const keyOf = (image: RuntimeImage): string => imageKey(image, byHandler);
  const index = new ImageIndex(images, keyOf);
  const holds = new Map<string, ImageHold>();
  const hold = (references: readonly string[], why: ImageHold, handler?: string): void => {
    for (const key of references.flatMap((reference) => index.find(reference))) {
      const isOther = byHandler && handler !== undefined && handler !== (key.split(",")[1] ?? "");
      if (!isOther && !holds.has(key)) holds.set(key, why);
    }
  };
  for (const container of users.containers) {
    const { image, imageRef, imageId = "", imageHandler = "" } = container;
    hold([imageId, imageRef, image], { keep: "inUse", by: containerName(container) }, imageHandler);
  }
  for (const { reference, by } of users.mounted) hold([reference], { keep: "inUse", by });
  for (const { reference, by } of users.wanted) hold([reference], { keep: "wanted", by });
  hold(users.pulling, { keep: "pulling" });
  hold([users.sandboxImage ?? ""], { keep: "sandbox" });
  for (const image of images) {
    const keep = ownReason(image, users);
    if (keep !== undefined && !holds.has(keyOf(image))) holds.set(keyOf(image), { keep });
  }
  return holds;
}

function ownReason(image: RuntimeImage, users: ImageUsers): ImageHold["keep"] | undefined {
  if (image.pinned) return "pinned";
  const isOwn = image.tags.some((tag) => tag.startsWith(OWN_PREFIX));
  return isOwn || users.isLocal(image) ? "local" : undefined;
}

function containerName({ labels, name }: Pick<ContainerSummary, "labels" | "name">): string {
  const pod = labels[POD_NAME_LABEL];
  return pod === undefined ? name : `${labels[POD_NAMESPACE_LABEL] ?? ""}/${pod}`;
}

/** Returns the images that a pod names: of its containers of all kinds, and of its image volumes. Pure. */
export function imagesOf(pod: Pod): readonly HeldReference[] {
  const by = `${pod.metadata.namespace ?? ""}/${pod.metadata.name ?? ""}`;
  const volumes = (pod.spec.volumes ?? []).map(({ image }) => image?.reference);
  const references = [...allContainers(pod).map(({ image }) => image), ...volumes];
  return references.flatMap((reference) => (reference === undefined || reference === "" ? [] : [{ reference, by }]));
}
