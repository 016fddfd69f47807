import type { Container, PodSpec, SeccompProfile } from "./generated/types.ts";
import type { Problems } from "./problems.ts";
import { hasParentSegment } from "./validate-volume.ts";

const ID_RANGE = [0, 2 ** 31 - 1] as const;
const SYSCTL = /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;

/** Checks the pod's own security settings. */
export function checkPodSecurity(spec: PodSpec, problems: Problems): void {
  const path = "spec.securityContext";
  const context = spec.securityContext ?? {};
  for (const field of ["runAsUser", "runAsGroup", "fsGroup"] as const)
    problems.range(`${path}.${field}`, context[field], ID_RANGE);
  for (const [index, group] of (context.supplementalGroups ?? []).entries()) {
    problems.range(`${path}.supplementalGroups[${index}]`, group, ID_RANGE);
  }
  problems.oneOf(`${path}.supplementalGroupsPolicy`, context.supplementalGroupsPolicy, ["Merge", "Strict"]);
  problems.oneOf(`${path}.fsGroupChangePolicy`, context.fsGroupChangePolicy, ["OnRootMismatch", "Always"]);
  checkSeccomp(`${path}.seccompProfile`, context.seccompProfile, problems);
  checkSysctls(spec, problems);
  if (spec.hostPID && spec.shareProcessNamespace) {
    const fix = "keep one of hostPID and shareProcessNamespace";
    problems.add("spec.shareProcessNamespace", true, { message: "cannot be set together with hostPID", fix });
  }
}

function checkSysctls(spec: PodSpec, problems: Problems): void {
  const seen = new Set<string>();
  for (const [index, { name }] of (spec.securityContext?.sysctls ?? []).entries()) {
    const path = `spec.securityContext.sysctls[${index}].name`;
    const dotted = name.replaceAll("/", ".");
    if (name.length > 253 || !SYSCTL.test(name)) {
      problems.add(path, name, { message: "is not a valid sysctl name", fix: "write it like net.core.somaxconn" });
    } else if (seen.has(dotted)) {
      problems.add(path, name, { message: "is set twice", fix: "keep one of them" });
    } else if (spec.hostNetwork && dotted.startsWith("net.")) {
      const fix = "set it on the node, or leave hostNetwork out";
      problems.add(path, name, { message: "would change the node, because the pod uses hostNetwork", fix });
    } else if (spec.hostIPC && /^(?:kernel\.(?:shm|msg|sem)|fs\.mqueue\.)/.test(dotted)) {
      const fix = "set it on the node, or leave hostIPC out";
      problems.add(path, name, { message: "would change the node, because the pod uses hostIPC", fix });
    }
    seen.add(dotted);
  }
}

/** Checks one container's security settings. */
export function checkContainerSecurity(path: string, container: Container, problems: Problems): void {
  const context = container.securityContext;
  if (context === undefined) return;
  const base = `${path}.securityContext`;
  for (const field of ["runAsUser", "runAsGroup"] as const)
    problems.range(`${base}.${field}`, context[field], ID_RANGE);
  problems.oneOf(`${base}.procMount`, context.procMount, ["Default", "Unmasked"]);
  checkSeccomp(`${base}.seccompProfile`, context.seccompProfile, problems);
  if (context.allowPrivilegeEscalation !== false) return;
  const gains = context.privileged ? "privileged" : context.capabilities?.add?.includes("SYS_ADMIN") ? "SYS_ADMIN" : "";
  if (gains !== "") {
    const fix = "set allowPrivilegeEscalation to true, or drop the privilege";
    problems.add(`${base}.allowPrivilegeEscalation`, false, { message: `cannot be false together with ${gains}`, fix });
  }
}

function checkSeccomp(path: string, profile: SeccompProfile | undefined, problems: Problems): void {
  if (profile === undefined) return;
  problems.oneOf(`${path}.type`, profile.type, ["RuntimeDefault", "Unconfined", "Localhost"]);
  const local = profile.localhostProfile ?? "";
  if (profile.type === "Localhost" && local === "") {
    const fix = "name a file below the seccomp directory of the node";
    problems.add(`${path}.localhostProfile`, undefined, { message: "is required when the type is Localhost", fix });
  }
  if (profile.type !== "Localhost" && local !== "") {
    const fix = "remove it, or set type: Localhost";
    problems.add(`${path}.localhostProfile`, local, { message: "may be set only when the type is Localhost", fix });
  }
  if (local.startsWith("/") || hasParentSegment(local)) {
    const fix = "write it relative to the seccomp directory, without ..";
    problems.add(`${path}.localhostProfile`, local, { message: "leaves the seccomp directory", fix });
  }
}
