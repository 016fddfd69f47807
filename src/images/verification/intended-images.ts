import type { RuntimeImage } from "../../adapters/runtime/port.ts";
import { parseImageRef } from "../../model/image-ref.ts";
import { repositoryOf } from "../../model/registry-match.ts";

/** Returns the intended images that are on the node, each with its id. An intent without an image has none. Pure. */
export function intendedImages(
  intents: readonly string[],
  images: readonly RuntimeImage[],
): readonly (readonly [image: string, ref: string])[] {
  const ids = new Map(images.flatMap(({ id, tags, digests }) => [...tags, ...digests].map((name) => [name, id])));
  return intents.flatMap((image) => {
    const ref = ids.get(image) ?? ids.get(fullName(image));
    return ref === undefined ? [] : [[image, ref] as const];
  });
}

/** The name under which runtimes list the image: `docker.io/library/busybox:latest` for `busybox`. */
function fullName(image: string): string {
  try {
    const { tag, digest } = parseImageRef(image);
    const repository = repositoryOf(image);
    return digest === "" ? `${repository}:${tag || "latest"}` : `${repository}@${digest}`;
  } catch {
    // Written by another kubelet; the runtime may know it nevertheless.
    return image;
  }
}
