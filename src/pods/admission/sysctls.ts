import type { Pod } from "../../model/generated/types.ts";
import { sysctlName } from "../config/sysctl-name.ts";
import type { AdmissionFacts, Rejection } from "./facts.ts";

/** Safe sysctls: namespaced and without effect on others; by name, the first kernel release for which that holds. */
const SAFE: ReadonlyMap<string, string> = new Map([
  ["kernel.shm_rmid_forced", ""],
  ["net.ipv4.ip_local_port_range", ""],
  ["net.ipv4.tcp_syncookies", ""],
  ["net.ipv4.ping_group_range", ""],
  ["net.ipv4.ip_unprivileged_port_start", ""],
  ["net.ipv4.ip_local_reserved_ports", "3.16"],
  ["net.ipv4.tcp_keepalive_time", "4.5"],
  ["net.ipv4.tcp_fin_timeout", "4.6"],
  ["net.ipv4.tcp_keepalive_intvl", "4.5"],
  ["net.ipv4.tcp_keepalive_probes", "4.5"],
  ["net.ipv4.tcp_rmem", "4.15"],
  ["net.ipv4.tcp_wmem", "4.15"],
]);

/** Returns the namespace of a sysctl; undefined if it is not namespaced. */
function namespaceOf(name: string): "ipc" | "net" | undefined {
  if (name.startsWith("net.")) return "net";
  const isIpc = name.startsWith("kernel.shm") || name.startsWith("kernel.msg") || name === "kernel.sem";
  return isIpc || name.startsWith("fs.mqueue.") ? "ipc" : undefined;
}

/** Rejects sysctls that are neither safe nor allowed by the node, or whose namespace is the host's. */
export function sysctlProblem(pod: Pod, { node }: AdmissionFacts): Rejection | undefined {
  for (const { name: written } of pod.spec.securityContext?.sysctls ?? []) {
    const name = sysctlName(written);
    const why = problemOf(name, { pod, node });
    if (why !== undefined) return { reason: "SysctlForbidden", message: `forbidden sysctl: "${name}" ${why}` };
  }
  return undefined;
}

function problemOf(name: string, { pod, node }: { pod: Pod; node: AdmissionFacts["node"] }): string | undefined {
  const since = SAFE.get(name);
  const isSafe = since !== undefined && isAtLeast(node.kernel, since);
  const isAllowed = node.allowedUnsafeSysctls.some((written) => {
    const pattern = sysctlName(written);
    return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
  });
  if (!isSafe && !isAllowed) return "not allowlisted";
  const namespace = namespaceOf(name);
  if (namespace === "net" && pod.spec.hostNetwork === true) return "not allowed with host Net enabled";
  if (namespace === "ipc" && pod.spec.hostIPC === true) return "not allowed with host IPC enabled";
  return undefined;
}

/** Compares major and minor of a kernel release; one that cannot be parsed counts as new enough. */
function isAtLeast(kernel: string, wanted: string): boolean {
  const numbers = (text: string): number[] => (/^(\d+)\.(\d+)/.exec(text) ?? []).slice(1).map(Number);
  const [major, minor] = numbers(kernel);
  const [needMajor, needMinor] = numbers(wanted);
  if (major === undefined || minor === undefined || needMajor === undefined || needMinor === undefined) return true;
  return major > needMajor || (major === needMajor && minor >= needMinor);
}
