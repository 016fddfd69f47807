import type { IdMapping, PortMapping, SandboxConfig } from "../../adapters/runtime/port.ts";
import type { ContainerPort, Pod } from "../../model/generated/types.ts";
import { OWNER_ANNOTATION, POD_NAME_LABEL, POD_NAMESPACE_LABEL, POD_UID_LABEL } from "../../model/labels.ts";
import { podHostName } from "../../model/names.ts";
import { allContainers, podIdentity } from "../../model/pod-facts.ts";
import { ConfigError } from "./config-error.ts";
import type { DnsConfig } from "./dns.ts";
import { type LimitFacts, sandboxResources } from "./linux-resources.ts";
import { type PodPaths, podLogDir } from "./paths.ts";
import { groupsOf, namespacesOf } from "./security.ts";
import { sysctlName } from "./sysctl-name.ts";

/** What a sandbox is made from besides the pod itself. */
export interface SandboxFacts {
  readonly attempt: number;
  readonly paths: PodPaths;
  readonly cgroupParent: string;
  readonly dns: DnsConfig;
  readonly clusterDomain: string;
  readonly limits: LimitFacts;
  /** The pod's own user namespace. */
  readonly users?: IdMapping | undefined;
  /** Groups that the pod's volumes need. */
  readonly volumeGroups?: readonly number[];
  /** The owner of the pod, on a runtime that is shared with other agents. */
  readonly owner?: string;
}

/** Returns the runtime's sandbox for this pod. Pure. */
export function sandboxConfig(pod: Pod, facts: SandboxFacts): SandboxConfig {
  const identity = podIdentity(pod);
  const shared = pod.spec.securityContext;
  return {
    metadata: { ...identity, attempt: facts.attempt },
    hostname: pod.spec.hostNetwork === true ? "" : sandboxHostname(pod, facts.clusterDomain),
    logDirectory: podLogDir(facts.paths, identity),
    dns: facts.dns,
    portMappings: portMappings(pod),
    labels: {
      ...pod.metadata.labels,
      [POD_NAME_LABEL]: identity.name,
      [POD_NAMESPACE_LABEL]: identity.namespace,
      [POD_UID_LABEL]: identity.uid,
    },
    annotations: {
      ...pod.metadata.annotations,
      ...(facts.owner === undefined ? {} : { [OWNER_ANNOTATION]: facts.owner }),
    },
    linux: {
      cgroupParent: facts.cgroupParent,
      ...sandboxResources(pod, facts.limits),
      sysctls: Object.fromEntries((shared?.sysctls ?? []).map(({ name, value }) => [sysctlName(name), value])),
      security: {
        namespaces: namespacesOf(pod, facts.users),
        privileged: allContainers(pod).some((container) => container.securityContext?.privileged === true),
        ...(shared?.runAsUser === undefined ? {} : { runAsUser: shared.runAsUser }),
        ...(shared?.runAsGroup === undefined ? {} : { runAsGroup: shared.runAsGroup }),
        ...groupsOf(pod, facts.volumeGroups),
        seccomp: { type: "runtimeDefault" },
        ...(shared?.seLinuxOptions === undefined ? {} : { selinux: shared.seLinuxOptions }),
      },
    },
  };
}

function sandboxHostname(pod: Pod, clusterDomain: string): string {
  const name = podHostName(pod, clusterDomain);
  if (name.error !== undefined) throw new ConfigError(name.error);
  return name.sandboxHostname;
}

function portMappings(pod: Pod): PortMapping[] {
  return (pod.spec.containers ?? []).flatMap((container) => {
    const seen = new Set<string>();
    return (container.ports ?? []).filter((port) => isNew(seen, port)).map(toMapping);
  });
}

function isNew(seen: Set<string>, port: ContainerPort): boolean {
  const family = (port.hostIP ?? "").includes(":") ? "v6" : "v4";
  const key =
    port.name || `${family}-${port.protocol}-${port.hostIP ?? ""}:${port.containerPort}:${port.hostPort ?? 0}`;
  if (seen.has(key)) return false;
  seen.add(key);
  return true;
}

function toMapping(port: ContainerPort): PortMapping {
  return {
    protocol: port.protocol === "UDP" || port.protocol === "SCTP" ? port.protocol : "TCP",
    containerPort: port.containerPort,
    hostPort: port.hostPort ?? 0,
    hostIp: port.hostIP ?? "",
  };
}
