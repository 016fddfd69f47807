import type { VolumeKind } from "../kind.ts";

/** The content of an image. The runtime mounts it, for each container by itself: nothing is mounted here. */
export const image: VolumeKind = {
  plugin: "kubernetes.io/image",
  handles: (volume) => volume.image !== undefined,

  setUp({ volume }) {
    const { reference = "", pullPolicy = "IfNotPresent" } = volume.image ?? {};
    if (reference === "") return Promise.reject(new Error("image.reference is empty"));
    return Promise.resolve({ source: { kind: "image", reference, pullPolicy } });
  },
};
