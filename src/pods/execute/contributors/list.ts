import type { ExecuteDeps } from "../context.ts";
import { annotations } from "./annotations.ts";
import { blockDevices } from "./block-devices.ts";
import type { ContainerContributor } from "./contributor.ts";
import { environmentVariables } from "./environment-variables.ts";
import { hostsFileMount } from "./hosts-file-mount.ts";
import { resources } from "./resources.ts";
import { terminationLog } from "./termination-log.ts";
import { userNamespace } from "./user-namespace.ts";
import { volumes } from "./volumes.ts";

/**
 * Everything that containers are made from, in order. Those of the node come before the environment: the variables of
 * the pod's author win over theirs.
 */
export function containerContributors(deps: ExecuteDeps): readonly ContainerContributor[] {
  return [
    annotations,
    resources(deps),
    userNamespace(deps),
    ...(deps.contributors ?? []),
    environmentVariables(deps),
    volumes(deps),
    blockDevices(deps),
    hostsFileMount(deps),
    terminationLog(deps),
  ];
}
