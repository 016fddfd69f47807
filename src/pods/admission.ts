import type { Pod } from "../model/generated/types.ts";
import { isStaticPod } from "../model/pod-facts.ts";
import { unsupportedFields } from "../model/pod-support.ts";
import { sysctlName } from "./config/sysctl-name.ts";

/** Why a pod may not run here. */
export interface Rejection {
  readonly reason: string;
  readonly message: string;
}

export interface AdmissionFacts {
  /** Pods that already run or start here, without the one in question. */
  readonly others: readonly Pod[];
  readonly maxPods: number;
  readonly allowedUnsafeSysctls: readonly string[];
}

/** Sysctls that are namespaced and cannot harm others. */
const SAFE_SYSCTLS = new Set([
  "kernel.shm_rmid_forced",
  "net.ipv4.ip_local_port_range",
  "net.ipv4.tcp_syncookies",
  "net.ipv4.ping_group_range",
  "net.ipv4.ip_unprivileged_port_start",
  "net.ipv4.ip_local_reserved_ports",
  "net.ipv4.tcp_keepalive_time",
  "net.ipv4.tcp_fin_timeout",
  "net.ipv4.tcp_keepalive_intvl",
  "net.ipv4.tcp_keepalive_probes",
  "net.ipv4.tcp_rmem",
  "net.ipv4.tcp_wmem",
]);

/** The first reason to refuse the pod, or undefined. Runs once, when the pod is added. Pure. */
export function admit(pod: Pod, facts: AdmissionFacts): Rejection | undefined {
  const { refused } = unsupportedFields(pod);
  if (refused.length > 0) {
    const message = `The manifest asks for what this version cannot do, and running without it would be wrong: ${refused.join("; ")}`;
    return { reason: "PodFeatureUnsupported", message };
  }
  return sysctlProblem(pod, facts) ?? countProblem(pod, facts) ?? portProblem(pod, facts);
}

function sysctlProblem(pod: Pod, facts: AdmissionFacts): Rejection | undefined {
  for (const { name: written } of pod.spec.securityContext?.sysctls ?? []) {
    const name = sysctlName(written);
    const isAllowed = facts.allowedUnsafeSysctls.some((pattern) =>
      pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
    );
    if (!SAFE_SYSCTLS.has(name) && !isAllowed) {
      return { reason: "SysctlForbidden", message: `forbidden sysctl: "${name}" not allowlisted` };
    }
    if (name.startsWith("net.") && pod.spec.hostNetwork === true) {
      return { reason: "SysctlForbidden", message: `forbidden sysctl: "${name}" not allowed with host Net enabled` };
    }
    if (!name.startsWith("net.") && pod.spec.hostIPC === true) {
      return { reason: "SysctlForbidden", message: `forbidden sysctl: "${name}" not allowed with host IPC enabled` };
    }
  }
  return undefined;
}

function countProblem(pod: Pod, { others, maxPods }: AdmissionFacts): Rejection | undefined {
  if (isStaticPod(pod) || maxPods === 0 || others.length < maxPods) return undefined;
  const message = `Node didn't have enough resource: pods, requested: 1, used: ${others.length}, capacity: ${maxPods}`;
  return { reason: "OutOfpods", message };
}

function portProblem(pod: Pod, { others }: AdmissionFacts): Rejection | undefined {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return undefined;
  for (const other of others) {
    for (const taken of hostPorts(other)) {
      if (!wanted.some((port) => clashes(port, taken))) continue;
      const message = `Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports (${taken.protocol} ${taken.port} is held by ${other.metadata.name})`;
      return { reason: "NodePorts", message };
    }
  }
  return undefined;
}

interface HostPort {
  readonly port: number;
  readonly protocol: string;
  readonly ip: string;
}

function hostPorts(pod: Pod): HostPort[] {
  return pod.spec.containers.flatMap((container) =>
    (container.ports ?? [])
      .filter((port) => (port.hostPort ?? 0) > 0)
      .map((port) => ({ port: port.hostPort ?? 0, protocol: port.protocol ?? "TCP", ip: port.hostIP ?? "" })),
  );
}

function clashes(a: HostPort, b: HostPort): boolean {
  const isAny = (ip: string): boolean => ip === "" || ip === "0.0.0.0" || ip === "::";
  return a.port === b.port && a.protocol === b.protocol && (isAny(a.ip) || isAny(b.ip) || a.ip === b.ip);
}
