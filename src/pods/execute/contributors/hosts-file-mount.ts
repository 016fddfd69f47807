import type { Container, Pod } from "../../../model/generated/types.ts";
import { podIdentity } from "../../../model/pod-facts.ts";
import { hostsFile } from "../../config/hosts-file.ts";
import { podDir } from "../../config/paths.ts";
import type { ExecuteDeps } from "../context.ts";
import { agentFileMount, hasVolumeAt } from "./agent-file.ts";
import type { ContainerContributor } from "./contributor.ts";

const HOSTS = "/etc/hosts";

/** The pod's /etc/hosts, which `writeHostsFile` has written. */
export function hostsFileMount(deps: ExecuteDeps): ContainerContributor {
  return {
    name: "hosts file",
    contribute({ pod, container, sandboxIps }) {
      if (!needsHostsFile(pod, container, sandboxIps)) return {};
      return { mounts: [agentFileMount(deps, HOSTS, hostsPath(deps, pod))] };
    },
  };
}

/** Writes the pod's /etc/hosts if the container gets it. Apart from the mount, so that it runs beside the image pull. */
export async function writeHostsFile(
  deps: ExecuteDeps,
  pod: Pod,
  of: { readonly container: Container; readonly sandboxIps: readonly string[] },
): Promise<void> {
  if (!needsHostsFile(pod, of.container, of.sandboxIps)) return;
  const { clusterDomain } = deps.node.dns();
  const text = hostsFile(pod, { ips: of.sandboxIps, nodeHosts: deps.node.hostsFile(), clusterDomain });
  await deps.files.writeFile(hostsPath(deps, pod), text, 0o644);
}

/** True if there is something to write and the container mounts no file of its own. */
function needsHostsFile(pod: Pod, container: Container, ips: readonly string[]): boolean {
  return !hasVolumeAt(container, HOSTS) && (ips.length > 0 || pod.spec.hostNetwork === true);
}

function hostsPath({ node }: ExecuteDeps, pod: Pod): string {
  return `${podDir(node.paths, podIdentity(pod).uid)}/etc-hosts`;
}
