import { containerAnnotations } from "../../config/container-annotations.ts";
import type { ContainerContributor } from "./contributor.ts";

/** What the next agent must know of the spec that the container was made from. */
export const annotations: ContainerContributor = {
  name: "annotations",
  contribute: (creation) => ({ annotations: containerAnnotations(creation) }),
};
