import type { Pod } from "../../model/generated/types.ts";
import { podHostName } from "../../model/names.ts";

/** Returns the content of the pod's /etc/hosts. Pure. */
export function hostsFile(
  pod: Pod,
  facts: { ips: readonly string[]; nodeHosts: string; clusterDomain: string },
): string {
  const lines: string[] = [];
  if (pod.spec.hostNetwork === true) {
    lines.push("# Kubernetes-managed hosts file (host network).", facts.nodeHosts.replace(/\n$/, ""));
  } else {
    lines.push(
      "# Kubernetes-managed hosts file.",
      "127.0.0.1\tlocalhost",
      "::1\tlocalhost ip6-localhost ip6-loopback",
      "fe00::0\tip6-localnet",
      "fe00::0\tip6-mcastprefix",
      "fe00::1\tip6-allnodes",
      "fe00::2\tip6-allrouters",
    );
    const { hostname, domain } = podHostName(pod, facts.clusterDomain);
    for (const ip of facts.ips)
      lines.push(domain === "" ? `${ip}\t${hostname}` : `${ip}\t${hostname}.${domain}\t${hostname}`);
  }
  const aliases = pod.spec.hostAliases ?? [];
  if (aliases.length > 0) {
    lines.push("", "# Entries added by HostAliases.");
    for (const { ip, hostnames } of aliases) lines.push([ip, ...(hostnames ?? [])].join("\t"));
  }
  return `${lines.join("\n")}\n`;
}
