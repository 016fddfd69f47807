import { REMOVED_VOLUMES, removedVolume } from "./removed-volumes.ts";

/** What the agent does with a field. `when` limits a rule to some values; without it any value that is set counts. */
export interface Rule {
  /** `ok` and `part` also check the field's own type, if that has rules. `why` is the remark or the reason. */
  readonly kind: "ok" | "part" | "warn" | "refuse";
  readonly why: string;
  readonly when?: (value: unknown) => boolean;
}

const ok: Rule = { kind: "ok", why: "" };
const part = (why: string): Rule => ({ kind: "part", why });
const warn = (why: string, when: Rule["when"] = isOn): Rule => ({ kind: "warn", why, when });
const refuse = (why: string, when: Rule["when"] = isOn): Rule => ({ kind: "refuse", why, when });

function isOn(value: unknown): boolean {
  return value !== false;
}

function all(names: string): Record<string, Rule> {
  return Object.fromEntries(names.split(" ").map((name) => [name, ok]));
}

const windows = warn("only Linux pods run here: it does nothing");

const container: Readonly<Record<string, Rule>> = {
  ...all("name image imagePullPolicy command args workingDir env ports resources volumeMounts securityContext envFrom"),
  ...all("terminationMessagePath terminationMessagePolicy stdin stdinOnce tty lifecycle"),
  ...all("livenessProbe readinessProbe startupProbe restartPolicy restartPolicyRules resizePolicy"),
  volumeDevices: part(
    "claims with volumeMode Block, of a kind that has block devices: local, iscsi, fc and CSI volumes",
  ),
};

const scheduler = part("the scheduler's business; the node does nothing with it");

/**
 * By type, then by field: every field of these types has its line, and a test sees to it. A type without an entry is not
 * looked into, its fields are supported with the field that has it. `docs/pod-support.md` is made from this table.
 */
export const supportRules: Readonly<Record<string, Readonly<Record<string, Rule>>>> = {
  PodSpec: {
    ...all("containers initContainers volumes restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds"),
    ...all("hostNetwork hostPID hostIPC shareProcessNamespace hostname subdomain hostAliases dnsPolicy dnsConfig"),
    ...all("setHostnameAsFQDN hostnameOverride ephemeralContainers readinessGates resources overhead os"),
    ...all("securityContext nodeName enableServiceLinks automountServiceAccountToken"),
    ...all("serviceAccountName serviceAccount nodeSelector priority priorityClassName"),
    affinity: part("required node affinity is checked at admission; the rest is the scheduler's business"),
    tolerations: part("NoExecute taints are checked at admission; the rest is the scheduler's business"),
    schedulerName: scheduler,
    preemptionPolicy: scheduler,
    topologySpreadConstraints: scheduler,
    schedulingGates: scheduler,
    schedulingGroup: scheduler,
    hostUsers: part("false needs a runtime and a kernel that can"),
    ...all("runtimeClassName imagePullSecrets readinessGates"),
    resourceClaims: part("in a cluster; devices reach the container by CDI, which the runtime must have enabled"),
  },
  Container: container,
  EphemeralContainer: { ...container, targetContainerName: ok },
  Lifecycle: {
    ...all("postStart preStop"),
    stopSignal: part("as far as the runtime knows it; an older one uses the image's own"),
  },
  LifecycleHandler: {
    ...all("exec httpGet sleep"),
    tcpSocket: part("always fails, as in Kubernetes"),
  },
  Probe: {
    ...all("exec httpGet tcpSocket grpc initialDelaySeconds timeoutSeconds periodSeconds successThreshold"),
    ...all("failureThreshold terminationGracePeriodSeconds"),
  },
  ContainerPort: all("name containerPort hostPort hostIP protocol"),
  ContainerRestartRule: all("action exitCodes"),
  ContainerResizePolicy: all("resourceName restartPolicy"),
  Volume: {
    ...all("name hostPath emptyDir configMap secret downwardAPI projected image persistentVolumeClaim ephemeral"),
    nfs: part("needs the NFS client of the node: its kernel module and mount.nfs"),
    iscsi: part("needs open-iscsi on the node: iscsiadm and a running iscsid"),
    fc: part("needs a Fibre Channel adapter in the node"),
    flexVolume: part("needs the driver in the volumePluginDir of the node"),
    csi: part("in a cluster: the driver needs a CSIDriver object with the lifecycle mode Ephemeral"),
    awsElasticBlockStore: part("by the CSI driver ebs.csi.aws.com"),
    azureDisk: part("by the CSI driver disk.csi.azure.com"),
    azureFile: part("by the CSI driver file.csi.azure.com"),
    cinder: part("by the CSI driver cinder.csi.openstack.org"),
    gcePersistentDisk: part("by the CSI driver pd.csi.storage.gke.io"),
    portworxVolume: part("by the CSI driver pxd.portworx.com"),
    vsphereVolume: part("by the CSI driver csi.vsphere.vmware.com"),
    gitRepo: refuse("gitRepo volumes are disabled; clone into an emptyDir with an init container"),
    ...Object.fromEntries(REMOVED_VOLUMES.map((name) => [name, refuse(removedVolume(name) ?? "")])),
  },
  EmptyDirVolumeSource: {
    medium: ok,
    sizeLimit: part("a pod whose volume grows beyond it is evicted; in memory it is the size of the filesystem"),
  },
  HostPathVolumeSource: all("path type"),
  ProjectedVolumeSource: all("sources defaultMode"),
  VolumeProjection: {
    ...all("configMap secret downwardAPI serviceAccountToken clusterTrustBundle"),
    podCertificate: part("needs the feature gate PodCertificateRequest here and at the API server, and a signer"),
  },
  VolumeMount: {
    ...all("name mountPath readOnly mountPropagation subPath subPathExpr"),
    recursiveReadOnly: part("Enabled needs a runtime that can; IfPossible is what the runtime can"),
  },
  EnvVar: all("name value valueFrom"),
  EnvFromSource: all("prefix configMapRef secretRef"),
  EnvVarSource: {
    ...all("fieldRef resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef"),
  },
  ResourceRequirements: {
    ...all("limits requests claims"),
  },
  SecurityContext: {
    ...all("privileged runAsUser runAsGroup runAsNonRoot capabilities readOnlyRootFilesystem"),
    ...all("allowPrivilegeEscalation procMount seccompProfile appArmorProfile seLinuxOptions"),
    windowsOptions: windows,
  },
  PodSecurityContext: {
    ...all("runAsUser runAsGroup runAsNonRoot seccompProfile appArmorProfile seLinuxOptions"),
    ...all("supplementalGroups sysctls fsGroup fsGroupChangePolicy"),
    supplementalGroupsPolicy: part("Strict needs a runtime that knows it; refused at admission otherwise"),
    ...all("seLinuxChangePolicy"),
    windowsOptions: windows,
  },
};
