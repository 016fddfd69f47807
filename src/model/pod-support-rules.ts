/** What the agent does with a field. `when` limits a rule to some values; without it any value that is set counts. */
export interface Rule {
  /** `ok` also looks into the field's own type, if that has rules. */
  readonly kind: "ok" | "warn" | "refuse";
  readonly why: string;
  readonly when?: (value: unknown) => boolean;
}

const ok: Rule = { kind: "ok", why: "" };
const warn = (why: string, when: Rule["when"] = isOn): Rule => ({ kind: "warn", why, when });
const refuse = (why: string, when: Rule["when"] = isOn): Rule => ({ kind: "refuse", why, when });

function isOn(value: unknown): boolean {
  return value !== false;
}

function all(names: string): Record<string, Rule> {
  return Object.fromEntries(names.split(" ").map((name) => [name, ok]));
}

const container: Readonly<Record<string, Rule>> = {
  ...all("name image imagePullPolicy command args workingDir env ports resources volumeMounts securityContext envFrom"),
  ...all("terminationMessagePath terminationMessagePolicy stdin stdinOnce tty resizePolicy"),
  ...all("livenessProbe readinessProbe startupProbe"),
  lifecycle: ok,
  ...all("restartPolicy"),
  restartPolicyRules: refuse("restarting all containers is not supported yet", restartsAll),
  volumeDevices: refuse("block devices are not supported yet"),
};

/** True when a rule asks for more than the restart of its own container. */
function restartsAll(value: unknown): boolean {
  return Array.isArray(value) && value.some((rule: { action?: unknown }) => rule.action !== "Restart");
}

const nativeResources = ["cpu", "memory", "ephemeral-storage"];

/** True when the list asks for something that only a device plugin could give. */
function hasDevices(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.keys(value).some((name) => !nativeResources.includes(name) && !name.startsWith("hugepages-"));
}

const resourceList = refuse("devices and extended resources are not supported yet", hasDevices);

/**
 * By type, then by field. A type without an entry is not looked into; a field without one is warned of, or falls
 * under `*`. A later capability takes its line out of here.
 */
export const supportRules: Readonly<Record<string, Readonly<Record<string, Rule>>>> = {
  PodSpec: {
    ...all("containers initContainers volumes restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds"),
    ...all("hostNetwork hostPID hostIPC shareProcessNamespace hostname subdomain hostAliases dnsPolicy dnsConfig"),
    ...all("setHostnameAsFQDN hostnameOverride"),
    ...all(
      "securityContext nodeName enableServiceLinks automountServiceAccountToken serviceAccountName serviceAccount",
    ),
    // The scheduler's business, not the node's.
    ...all("tolerations affinity nodeSelector priority priorityClassName schedulerName preemptionPolicy"),
    ...all("topologySpreadConstraints schedulingGates schedulingGroup"),
    ephemeralContainers: refuse("ephemeral containers are not supported yet"),
    hostUsers: refuse("user namespaces are not supported yet", (value) => value === false),
    runtimeClassName: refuse("runtime classes are not supported yet"),
    resourceClaims: refuse("resource claims are not supported yet"),
    os: refuse("only linux pods run here", (value) => osName(value) !== "linux"),
    imagePullSecrets: warn("pull secrets are not used yet"),
    readinessGates: warn("readiness gates are not looked at yet"),
    resources: warn("pod-level resources are not applied yet"),
    overhead: warn("overhead is not applied yet"),
  },
  Container: container,
  Lifecycle: { ...all("postStart preStop"), stopSignal: warn("the image's own stop signal is used") },
  Volume: {
    ...all("name hostPath emptyDir configMap secret downwardAPI projected image persistentVolumeClaim"),
    gitRepo: refuse("gitRepo volumes are disabled; clone into an emptyDir with an init container"),
    "*": refuse("this kind of volume is not supported yet"),
  },
  EmptyDirVolumeSource: {
    medium: ok,
    sizeLimit: warn("the size limit is not enforced yet"),
  },
  ProjectedVolumeSource: all("sources defaultMode"),
  VolumeProjection: {
    ...all("configMap secret downwardAPI serviceAccountToken clusterTrustBundle"),
    podCertificate: refuse("pod certificates are not supported yet"),
  },
  VolumeMount: all("name mountPath readOnly mountPropagation subPath subPathExpr recursiveReadOnly"),
  EnvVar: all("name value valueFrom"),
  EnvVarSource: {
    ...all("fieldRef resourceFieldRef configMapKeyRef secretKeyRef"),
    fileKeyRef: refuse("variables from files are not supported yet"),
  },
  ResourceRequirements: {
    limits: resourceList,
    requests: resourceList,
    claims: refuse("resource claims are not supported yet"),
  },
  SecurityContext: {
    ...all("privileged runAsUser runAsGroup runAsNonRoot capabilities readOnlyRootFilesystem"),
    ...all("allowPrivilegeEscalation procMount seccompProfile appArmorProfile seLinuxOptions"),
  },
  PodSecurityContext: {
    ...all("runAsUser runAsGroup runAsNonRoot seccompProfile appArmorProfile seLinuxOptions"),
    ...all("supplementalGroups sysctls fsGroup fsGroupChangePolicy"),
    supplementalGroupsPolicy: refuse("strict supplemental groups are not supported yet", (value) => value === "Strict"),
    seLinuxChangePolicy: warn("is not acted on yet"),
  },
};

function osName(value: unknown): unknown {
  return typeof value === "object" && value !== null && "name" in value ? value.name : undefined;
}
