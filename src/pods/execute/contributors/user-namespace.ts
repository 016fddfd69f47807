import type { ExecuteDeps } from "../context.ts";
import { userMapping } from "../user-namespace.ts";
import type { ContainerContributor } from "./contributor.ts";

/** The user namespace of a pod with `hostUsers: false`. */
export function userNamespace(deps: Pick<ExecuteDeps, "users">): ContainerContributor {
  return {
    name: "user namespace",
    contribute: async ({ pod }) => ({ users: await userMapping(deps, pod) }),
  };
}
