import { containerResources } from "../../config/linux-resources.ts";
import type { ExecuteDeps } from "../context.ts";
import type { ContainerContributor } from "./contributor.ts";

/** CPU, memory, huge page and swap limits, from the requests and limits of the spec. */
export function resources({ node }: Pick<ExecuteDeps, "node">): ContainerContributor {
  return {
    name: "resources",
    contribute: ({ pod, container }) => ({ resources: containerResources(pod, container, node.limits()) }),
  };
}
