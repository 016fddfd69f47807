import { bool, float, int, text } from "../kinds.ts";
import { headers } from "../kinds-lists.ts";
import { gone, moved, type OldEntry, refused, turned } from "./entry.ts";

const empty = (value: string): boolean => value === "";
const off = (value: boolean): boolean => !value;
const CNI = "the runtime configures the network (CNI)";
const RKT = "support for rkt was removed in 1.11; use a CRI runtime with --container-runtime-endpoint";
const DOCKERSHIM =
  "dockershim was removed in 1.24; use containerd, CRI-O or cri-dockerd with --container-runtime-endpoint";
const LOG = "the log goes to stderr; --logging-format and -v shape it";
const DOCKER_STATS = "statistics do not come from Docker any more";

/** The endpoints that dockershim served. */
function endpoint(option: "containerRuntimeEndpoint" | "imageServiceEndpoint", field: string): OldEntry {
  return turned(
    text("SOCKET"),
    { field, last: "1.8", what: `sets ${option}; a socket of dockershim is refused` },
    (value) =>
      value.includes("dockershim")
        ? { problem: `ended with 1.8: ${DOCKERSHIM}` }
        : {
            sets: value === "" ? [] : [{ option, value }],
            warning: `ended with 1.8; it is ${option} now, which is set from it`,
          },
  );
}

/** Settings of kubelets 1.3 to 1.35 that were removed: one entry each. */
export const oldEntries: readonly OldEntry[] = [
  moved("staticPodPath", { field: "config", last: "1.3" }),
  moved("staticPodPath", { field: "podManifestPath", last: "1.9" }),
  moved("staticPodURL", { field: "manifestURL", last: "1.9" }),
  turned(headers, { field: "manifestURLHeader", last: "1.9", what: "sets staticPodURLHeader" }, (value) => ({
    sets: [{ option: "staticPodURLHeader", value }],
    warning: "ended with 1.9; it is staticPodURLHeader now, which is set from it",
  })),
  moved("tlsCertFile", { field: "tLSCertFile", last: "1.3" }),
  moved("tlsPrivateKeyFile", { field: "tLSPrivateKeyFile", last: "1.3" }),
  moved("certDir", { field: "certDirectory", last: "1.7" }),
  moved("hostnameOverride", { field: "hostnameOverride", last: "1.6" }),
  moved("nodeIP", { field: "nodeIP", last: "1.6" }),
  gone(
    text("IMAGE"),
    { flag: "pod-infra-container-image", field: "podInfraContainerImage", last: "1.34" },
    "the runtime's own configuration names the sandbox image",
  ),
  gone(text("SOCKET"), { flag: "docker-endpoint", field: "dockerEndpoint", last: "1.23" }, DOCKERSHIM),
  gone(
    text("NAME"),
    { flag: "docker-exec-handler", field: "dockerExecHandlerName", last: "1.8" },
    "the runtime runs commands (CRI)",
  ),
  moved("rootDir", { field: "rootDirectory", last: "1.7" }),
  gone(
    text("DIR"),
    { flag: "seccomp-profile-root", field: "seccompProfileRoot", last: "1.22" },
    "profiles are in the directory seccomp of --root-dir",
  ),
  moved("allowPrivileged", { field: "allowPrivileged", last: "1.9" }),
  moved("hostNetworkSources", { field: "hostNetworkSources", last: "1.9" }),
  moved("hostPIDSources", { field: "hostPIDSources", last: "1.9" }),
  moved("hostIPCSources", { field: "hostIPCSources", last: "1.9" }),
  moved("minimumContainerTTLDuration", { field: "minimumGCAge", last: "1.8" }),
  moved("maximumDeadContainersPerContainer", {
    flag: "max-per-pod-container-count",
    field: "maxPerPodContainerCount",
    last: "1.8",
  }),
  moved("maximumDeadContainers", { field: "maxContainerCount", last: "1.8" }),
  moved("cadvisorPort", { field: "cAdvisorPort", last: "1.9" }),
  gone(
    text("NAME"),
    { flag: "master-service-namespace", field: "masterServiceNamespace", last: "1.26" },
    "services come from the pod's own namespace and from default",
  ),
  turned(
    int,
    {
      flag: "low-diskspace-threshold-mb",
      field: "lowDiskSpaceThresholdMB",
      last: "1.7",
      what: "sets nodefs.available and imagefs.available of evictionHard, where not given",
    },
    (value) => ({
      ...(value > 0 && {
        sets: [
          {
            option: "evictionHard" as const,
            value: { "nodefs.available": `${value}Mi`, "imagefs.available": `${value}Mi` },
            fills: true,
          },
        ],
      }),
      warning:
        "ended with 1.7; it is nodefs.available and imagefs.available of evictionHard now, which are set from it",
    }),
  ),
  moved("evictionPressureTransitionPeriod", {
    flag: "outofdisk-transition-frequency",
    field: "outOfDiskTransitionFrequency",
    last: "1.7",
  }),
  refused(
    text("NAME"),
    { flag: "network-plugin", field: "networkPluginName", last: "1.23" },
    { isHarmless: (value) => value === "" || value === "cni", why: `only cni is possible, and ${CNI}` },
  ),
  gone(text("DIR"), { flag: "network-plugin-dir", field: "networkPluginDir", last: "1.8" }, CNI),
  gone(int, { flag: "network-plugin-mtu", field: "networkPluginMTU", last: "1.23" }, CNI),
  gone(text("DIR"), { flag: "cni-conf-dir", field: "cniConfDir", last: "1.23" }, CNI),
  gone(text("DIR"), { flag: "cni-bin-dir", field: "cniBinDir", last: "1.23" }, CNI),
  gone(text("DIR"), { flag: "cni-cache-dir", last: "1.23" }, CNI),
  turned(
    text("NAME"),
    { field: "cloudProvider", last: "1.7", what: "external sets --cloud-provider; a built-in provider is refused" },
    (value) =>
      value === "external"
        ? { sets: [{ option: "cloudProvider", value }], warning: "ended with 1.7; it is the flag --cloud-provider now" }
        : value === "" || value === "auto-detect"
          ? { warning: "ended with 1.7 and is ignored: only an external provider is possible" }
          : {
              problem: `ended with 1.7: the built-in provider ${value} is gone; use external and its cloud controller`,
            },
  ),
  gone(
    text("FILE"),
    { flag: "cloud-config", field: "cloudConfigFile", last: "1.33" },
    "only built-in cloud providers read it; use --cloud-provider=external",
  ),
  moved("runtimeCgroups", { field: "runtimeCgroups", last: "1.8" }),
  moved("systemCgroups", { flag: "system-container", field: "systemContainer", last: "1.5" }),
  moved("kubeletCgroups", { flag: "resource-container", last: "1.5" }),
  turned(
    text("NAME"),
    {
      flag: "container-runtime",
      field: "containerRuntime",
      last: "1.26",
      what: "ignored; rkt and names that no release knew are refused",
    },
    (value) => {
      if (value === "rkt") return { problem: `ended with 1.10: ${RKT}` };
      if (value === "docker")
        return { warning: `ended with 1.26: ${DOCKERSHIM}; pods run in the runtime that it names` };
      return value === "remote" || value === ""
        ? { warning: "ended with 1.26 and is ignored: every runtime is a remote one (CRI)" }
        : { problem: `ended with 1.26: no runtime ${value}; name the socket with --container-runtime-endpoint` };
    },
  ),
  endpoint("containerRuntimeEndpoint", "remoteRuntimeEndpoint"),
  endpoint("imageServiceEndpoint", "remoteImageEndpoint"),
  gone(bool, { flag: "enable-cri", field: "enableCRI", last: "1.6" }, "the CRI is always used"),
  gone(bool, { flag: "experimental-cri", last: "1.5" }, "the CRI is always used"),
  gone(text("FILE"), { flag: "rkt-path", field: "rktPath", last: "1.10" }, RKT),
  gone(text("ADDRESS"), { flag: "rkt-api-endpoint", field: "rktAPIEndpoint", last: "1.10" }, RKT),
  gone(text("IMAGE"), { flag: "rkt-stage1-image", field: "rktStage1Image", last: "1.10" }, RKT),
  moved("lockFile", { field: "lockFilePath", last: "1.8" }),
  moved("exitOnLockContention", { field: "exitOnLockContention", last: "1.8" }),
  refused(
    bool,
    { flag: "configure-cbr0", field: "configureCbr0", last: "1.4" },
    { isHarmless: off, why: `no bridge is made here; ${CNI}` },
  ),
  gone(
    bool,
    { flag: "reconcile-cidr", field: "reconcileCIDR", last: "1.5" },
    "the pod range of the Node is always followed",
  ),
  refused(
    bool,
    { flag: "experimental-flannel-overlay", field: "experimentalFlannelOverlay", last: "1.4" },
    { isHarmless: off, why: `use flannel's CNI plugin; ${CNI}` },
  ),
  gone(
    text("CIDR"),
    { flag: "non-masquerade-cidr", field: "nonMasqueradeCIDR", last: "1.23" },
    "masquerading is the network plugin's, or the ip-masq-agent's",
  ),
  gone(bool, { flag: "babysit-daemons", field: "babysitDaemons", last: "1.6" }, "no daemon is watched here"),
  refused(
    int,
    { flag: "experimental-nvidia-gpus", field: "nvidiaGPUs", last: "1.5" },
    { isHarmless: (value) => value === 0, why: "GPUs come through device plugins" },
  ),
  gone(
    bool,
    { flag: "containerized", field: "containerized", last: "1.15" },
    "mount the host's directories with shared propagation instead",
  ),
  turned(
    bool,
    {
      flag: "register-schedulable",
      field: "registerSchedulable",
      last: "1.33",
      what: "false sets a taint in registerWithTaints",
    },
    (value) =>
      value
        ? { warning: "ended with 1.33 and is ignored: nodes are schedulable unless tainted" }
        : {
            sets: [
              {
                option: "registerWithTaints",
                value: [{ key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" }],
              },
            ],
            warning: "ended with 1.33; it is a taint of registerWithTaints now, which is set from it",
          },
  ),
  moved("nodeLabels", { field: "nodeLabels", last: "1.8" }),
  gone(
    bool,
    { flag: "enable-custom-metrics", field: "enableCustomMetrics", last: "1.10" },
    "metrics of applications are scraped from them",
  ),
  moved("experimentalMounterPath", { field: "experimentalMounterPath", last: "1.8" }),
  moved("experimentalAllocatableIgnoreEviction", {
    field: "experimentalNodeAllocatableIgnoreEvictionThreshold",
    last: "1.8",
  }),
  moved("kernelMemcgNotification", {
    flag: "experimental-kernel-memcg-notification",
    field: "experimentalKernelMemcgNotification",
    last: "1.24",
  }),
  moved("qosReserved", { flag: "experimental-qos-reserved", field: "experimentalQOSReserved", last: "1.10" }),
  gone(
    bool,
    {
      flag: "experimental-check-node-capabilities-before-mount",
      field: "experimentalCheckNodeCapabilitiesBeforeMount",
      last: "1.23",
    },
    "a failed mount reports the reason",
  ),
  moved("failSwapOn", { flag: "experimental-fail-swap-on", field: "experimentalFailSwapOn", last: "1.13" }),
  gone(
    bool,
    { flag: "keep-terminated-pod-volumes", field: "keepTerminatedPodVolumes", last: "1.30" },
    "volumes of ended pods are always unmounted",
  ),
  moved("imagePullProgressTimeout", {
    flag: "image-pull-progress-deadline",
    field: "imagePullProgressDeadline",
    last: "1.23",
  }),
  moved("configTrialDuration", { field: "configTrialDuration", last: "1.9" }),
  moved("iptablesMasqueradeBit", { flag: "iptables-masquerade-bit", last: "1.30" }),
  moved("iptablesDropBit", { flag: "iptables-drop-bit", last: "1.30" }),
  gone(bool, { flag: "require-kubeconfig", last: "1.9" }, "--kubeconfig decides it"),
  moved("bootstrapKubeconfig", { flag: "experimental-bootstrap-kubeconfig", last: "1.22" }),
  moved("allowedUnsafeSysctls", { flag: "experimental-allowed-unsafe-sysctls", last: "1.10" }),
  moved("cgroupsPerQOS", { flag: "experimental-cgroups-per-qos", last: "1.5" }),
  refused(
    text("DIR"),
    { flag: "bootstrap-checkpoint-path", last: "1.18" },
    { isHarmless: empty, why: "pods are not checkpointed; use static pods for what must run without a cluster" },
  ),
  gone(bool, { flag: "docker-disable-shared-pid", last: "1.11" }, "shareProcessNamespace of the pod decides it"),
  refused(bool, { flag: "experimental-dockershim", last: "1.18" }, { isHarmless: off, why: DOCKERSHIM }),
  gone(text("DIR"), { flag: "experimental-dockershim-root-directory", last: "1.23" }, DOCKERSHIM),
  gone(bool, { flag: "redirect-container-streaming", last: "1.19" }, "streams always go through the agent"),
  gone(bool, { flag: "enable-cadvisor-json-endpoints", last: "1.20" }, "/spec/ and /stats/ are always served"),
  gone(float, { flag: "chaos-chance", last: "1.21" }, "it was for tests"),
  gone(bool, { flag: "really-crash-for-testing", last: "1.23" }, "it was for tests; the agent always ends at a bug"),
  gone(text("SOCKET"), { flag: "docker", last: "1.23" }, DOCKER_STATS),
  gone(text("DIR"), { flag: "docker-root", last: "1.23" }, DOCKER_STATS),
  gone(bool, { flag: "docker-only", last: "1.23" }, DOCKER_STATS),
  gone(text("WORDS"), { flag: "docker-env-metadata-whitelist", last: "1.23" }, DOCKER_STATS),
  gone(bool, { flag: "docker-tls", last: "1.23" }, DOCKER_STATS),
  gone(text("FILE"), { flag: "docker-tls-ca", last: "1.23" }, DOCKER_STATS),
  gone(text("FILE"), { flag: "docker-tls-cert", last: "1.23" }, DOCKER_STATS),
  gone(text("FILE"), { flag: "docker-tls-key", last: "1.23" }, DOCKER_STATS),
  refused(
    text("FILE"),
    { flag: "azure-container-registry-config", last: "1.29" },
    { isHarmless: empty, why: "use a credential provider, --image-credential-provider-config" },
  ),
  refused(
    text("FILE"),
    { flag: "google-json-key", last: "1.12" },
    { isHarmless: empty, why: "use a credential provider, --image-credential-provider-config" },
  ),
  gone(bool, { flag: "logtostderr", last: "1.25" }, LOG),
  gone(bool, { flag: "alsologtostderr", last: "1.25" }, LOG),
  gone(text("DIR"), { flag: "log-dir", last: "1.25" }, LOG),
  gone(text("FILE"), { flag: "log-file", last: "1.25" }, LOG),
  gone(int, { flag: "log-file-max-size", last: "1.25" }, LOG),
  gone(text("LEVEL"), { flag: "stderrthreshold", last: "1.25" }, LOG),
  gone(text("FILE:N"), { flag: "log-backtrace-at", last: "1.25" }, LOG),
  gone(bool, { flag: "add-dir-header", last: "1.25" }, LOG),
  gone(bool, { flag: "skip-headers", last: "1.25" }, LOG),
  gone(bool, { flag: "skip-log-headers", last: "1.25" }, LOG),
  gone(bool, { flag: "one-output", last: "1.25" }, LOG),
];
