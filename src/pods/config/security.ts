import type {
  ContainerSecurity,
  IdMapping,
  NamespaceOptions,
  RuntimeImage,
  SecurityProfile,
} from "../../adapters/runtime/port.ts";
import type { AppArmorProfile, Container, Pod, SeccompProfile } from "../../model/generated/types.ts";
import { APPARMOR_ANNOTATION_PREFIX } from "../../model/labels.ts";
import { ConfigError } from "./config-error.ts";
import { MASKED_PATHS, READONLY_PATHS } from "./masked-paths.ts";

/** The namespaces that a pod's containers share. */
export function namespacesOf(pod: Pod, users?: IdMapping): NamespaceOptions {
  const spec = pod.spec;
  return {
    network: spec?.hostNetwork === true ? "node" : "pod",
    ipc: spec?.hostIPC === true ? "node" : "pod",
    pid: spec?.hostPID === true ? "node" : spec?.shareProcessNamespace === true ? "pod" : "container",
    ...(users && { users }),
  };
}

/** What a container's security context is made from besides the spec. */
export interface SecurityFacts {
  readonly image: Pick<RuntimeImage, "uid" | "username">;
  readonly seccompRoot: string;
  /** Paths to mask on this machine besides the fixed ones. */
  readonly extraMaskedPaths: readonly string[];
  /** True if containers without a seccomp profile get RuntimeDefault. */
  readonly seccompDefault: boolean;
  /** The pod's own user namespace. */
  readonly users?: IdMapping;
  /** The container whose process namespace an ephemeral container joins. */
  readonly targetId?: string;
  /** Groups that the pod's volumes need. */
  readonly volumeGroups?: readonly number[];
}

/** Returns the security context of a container; the container's fields win over the pod's. */
export function containerSecurity(pod: Pod, container: Container, facts: SecurityFacts): ContainerSecurity {
  const own = container.securityContext;
  const shared = pod.spec.securityContext;
  const runAsGroup = own?.runAsGroup ?? shared?.runAsGroup;
  // Also for privileged containers, as in Kubernetes: the runtime itself takes the masks off those.
  const isUnmasked = own?.procMount === "Unmasked";
  const selinux = own?.seLinuxOptions ?? shared?.seLinuxOptions;
  const apparmor = apparmorOf(pod, container);
  return {
    namespaces: { ...namespacesOf(pod, facts.users), ...targetOf(pod, facts.targetId) },
    privileged: own?.privileged === true,
    readonlyRootfs: own?.readOnlyRootFilesystem === true,
    noNewPrivs: own?.allowPrivilegeEscalation === false,
    addCapabilities: own?.capabilities?.add ?? [],
    dropCapabilities: own?.capabilities?.drop ?? [],
    ...user(pod, container, facts.image),
    ...(runAsGroup === undefined ? {} : { runAsGroup }),
    ...groupsOf(pod, facts.volumeGroups),
    maskedPaths: isUnmasked ? [] : [...MASKED_PATHS, ...facts.extraMaskedPaths],
    readonlyPaths: isUnmasked ? [] : READONLY_PATHS,
    seccomp: seccomp(own?.seccompProfile ?? shared?.seccompProfile, facts),
    ...(apparmor === undefined ? {} : { apparmor }),
    ...(selinux === undefined ? {} : { selinux }),
  };
}

/**
 * fsGroup first, then the supplemental groups, then those of volumes that are not among them, as Kubernetes orders them;
 * and whether the image's own count too.
 */
export function groupsOf(
  pod: Pod,
  volumeGroups: readonly number[] = [],
): Pick<ContainerSecurity, "supplementalGroups" | "supplementalGroupsPolicy"> {
  const shared = pod.spec.securityContext;
  const own = shared?.supplementalGroups ?? [];
  return {
    supplementalGroups: [
      ...(shared?.fsGroup === undefined ? [] : [shared.fsGroup]),
      ...own,
      ...volumeGroups.filter((group) => !own.includes(group)),
    ],
    ...(shared?.supplementalGroupsPolicy === "Strict" ? { supplementalGroupsPolicy: "Strict" } : {}),
  };
}

function user(
  pod: Pod,
  container: Container,
  image: Pick<RuntimeImage, "uid" | "username">,
): { runAsUser?: number; runAsUsername?: string } {
  const own = container.securityContext;
  const shared = pod.spec.securityContext;
  const asked = own?.runAsUser ?? shared?.runAsUser;
  const nonRoot = own?.runAsNonRoot ?? shared?.runAsNonRoot ?? false;
  const where = `(pod: "${pod.metadata.name}_${pod.metadata.namespace}(${pod.metadata.uid})", container: ${container.name})`;
  if (asked !== undefined) {
    if (nonRoot && asked === 0) throw new ConfigError(`container's runAsUser breaks non-root policy ${where}`);
    return { runAsUser: asked };
  }
  if (image.uid === undefined && image.username !== "") {
    if (nonRoot) {
      const text = `container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root ${where}`;
      throw new ConfigError(text);
    }
    return { runAsUsername: image.username };
  }
  const uid = image.uid ?? 0;
  if (nonRoot && uid === 0) throw new ConfigError(`container has runAsNonRoot and image will run as root ${where}`);
  return { runAsUser: uid };
}

/** Joins the target's process namespace only if containers have one each. */
function targetOf(pod: Pod, targetId: string | undefined): Partial<NamespaceOptions> {
  return targetId === undefined || namespacesOf(pod).pid !== "container" ? {} : { pid: "target", targetId };
}

function seccomp(
  profile: SeccompProfile | undefined,
  { seccompRoot, seccompDefault }: Pick<SecurityFacts, "seccompRoot" | "seccompDefault">,
): SecurityProfile {
  switch (profile?.type) {
    case "RuntimeDefault":
      return { type: "runtimeDefault" };
    case "Localhost":
      return { type: "localhost", localhostRef: `${seccompRoot}/${profile.localhostProfile ?? ""}` };
    case "Unconfined":
      return { type: "unconfined" };
    default:
      return { type: seccompDefault ? "runtimeDefault" : "unconfined" };
  }
}

/** The container's field, else the deprecated annotation, else the pod's field. */
function apparmorOf(pod: Pod, container: Container): SecurityProfile | undefined {
  const own = container.securityContext?.appArmorProfile;
  if (own !== undefined) return apparmorProfile(own);
  const annotated = pod.metadata.annotations?.[`${APPARMOR_ANNOTATION_PREFIX}${container.name}`];
  if (annotated !== undefined && annotated !== "") return annotatedProfile(annotated);
  const shared = pod.spec.securityContext?.appArmorProfile;
  return shared && apparmorProfile(shared);
}

function annotatedProfile(text: string): SecurityProfile {
  if (text === "runtime/default") return { type: "runtimeDefault" };
  if (text === "unconfined") return { type: "unconfined" };
  if (text.startsWith("localhost/")) return { type: "localhost", localhostRef: text.slice("localhost/".length) };
  throw new ConfigError(`AppArmor profile "${text}" is not runtime/default, unconfined or localhost/NAME`);
}

function apparmorProfile(profile: AppArmorProfile): SecurityProfile {
  switch (profile.type) {
    case "Localhost":
      return { type: "localhost", localhostRef: profile.localhostProfile ?? "" };
    case "Unconfined":
      return { type: "unconfined" };
    default:
      return { type: "runtimeDefault" };
  }
}
