import { bool, duration, headers, int, list, oneOf, optionalInt, text } from "./kinds.ts";
import { type OptionTable, option, type Values } from "./option.ts";
import {
  absolutePath,
  atLeast,
  between,
  dnsName,
  filled,
  httpUrl,
  ip,
  ips,
  moduleLevels,
  positive,
  unixEndpoint,
} from "./rules.ts";

const port = between(0, 65535);
const SECOND = 1000;

/** Every setting of the agent, by its field name in KubeletConfiguration where it has one. To add one, add an entry. */
export const agentOptions = {
  staticPodPath: option(text("PATH"), {
    flag: "pod-manifest-path",
    default: "",
    topic: "Pod sources",
    help: "File or directory of pod manifests to run.",
  }),
  staticPodURL: option(text("URL"), {
    flag: "manifest-url",
    default: "",
    topic: "Pod sources",
    help: "URL of a pod, or a list of pods, to run.",
    validate: httpUrl,
  }),
  staticPodURLHeader: option(headers, {
    flag: "manifest-url-header",
    default: {},
    topic: "Pod sources",
    help: "Header to send to the manifest URL; may be repeated.",
    secret: true,
  }),
  fileCheckFrequency: option(duration, {
    flag: "file-check-frequency",
    default: 20 * SECOND,
    topic: "Pod sources",
    live: true,
    help: "Read the manifest path again this often, though changes are seen at once.",
    validate: positive,
  }),
  httpCheckFrequency: option(duration, {
    flag: "http-check-frequency",
    default: 20 * SECOND,
    topic: "Pod sources",
    live: true,
    help: "Ask the manifest URL this often.",
    validate: positive,
  }),
  syncFrequency: option(duration, {
    flag: "sync-frequency",
    default: 60 * SECOND,
    topic: "Pod sources",
    live: true,
    help: "Longest time between two looks at a pod that nothing happened to.",
    validate: positive,
  }),
  runOnce: option(bool, {
    flag: "runonce",
    default: false,
    topic: "Pod sources",
    help: "Start the pods of the file and URL sources, wait for them, print a result for each and exit.",
  }),

  containerRuntimeEndpoint: option(text("SOCKET"), {
    flag: "container-runtime-endpoint",
    default: "unix:///run/containerd/containerd.sock",
    topic: "Container runtime",
    help: "Socket of the container runtime (CRI).",
    validate: unixEndpoint,
  }),
  imageServiceEndpoint: option(text("SOCKET"), {
    flag: "image-service-endpoint",
    default: "",
    topic: "Container runtime",
    help: "Socket of the image service; empty means the runtime's.",
    validate: (value) => (value === "" ? undefined : unixEndpoint(value)),
  }),
  runtimeRequestTimeout: option(duration, {
    flag: "runtime-request-timeout",
    default: 120 * SECOND,
    topic: "Container runtime",
    live: true,
    help: "Time limit of a call to the runtime; pulls, logs, exec and attach have none.",
    validate: positive,
  }),
  maxConcurrentStarts: option(int, {
    flag: "max-concurrent-starts",
    default: 8,
    topic: "Container runtime",
    live: true,
    help: "How many sandboxes and containers may be starting at the same time.",
    validate: atLeast(1),
  }),

  serializeImagePulls: option(bool, {
    flag: "serialize-image-pulls",
    default: true,
    topic: "Images",
    live: true,
    help: "Pull one image at a time. Off when --max-parallel-image-pulls is 2 or more.",
  }),
  maxParallelImagePulls: option(optionalInt, {
    flag: "max-parallel-image-pulls",
    default: undefined,
    topic: "Images",
    live: true,
    help: "How many images may be pulled at the same time.",
    validate: atLeast(1),
  }),
  registryPullQPS: option(int, {
    flag: "registry-qps",
    default: 5,
    topic: "Images",
    live: true,
    help: "Image pulls begun per second; 0 means no limit.",
    validate: atLeast(0),
  }),
  registryBurst: option(int, {
    flag: "registry-burst",
    default: 10,
    topic: "Images",
    live: true,
    help: "Image pulls that may begin at once before --registry-qps holds them back.",
    validate: atLeast(0),
  }),

  hostnameOverride: option(text("NAME"), {
    flag: "hostname-override",
    default: "",
    topic: "Node",
    help: "Name of this node; empty means the host's name.",
    validate: (value) => dnsName(value.trim().toLowerCase()),
  }),
  maxPods: option(int, {
    flag: "max-pods",
    default: 110,
    topic: "Node",
    live: true,
    help: "How many pods may run here.",
    validate: atLeast(0),
  }),
  cgroupDriver: option(oneOf("cgroupfs", "systemd"), {
    flag: "cgroup-driver",
    default: "cgroupfs",
    topic: "Node",
    help: "How cgroups are made. The runtime's own answer wins where it gives one.",
  }),
  cgroupRoot: option(text("CGROUP"), {
    flag: "cgroup-root",
    default: "",
    topic: "Node",
    help: "Cgroup under which all pods are put; empty means the root.",
  }),

  rootDir: option(text("DIR"), {
    flag: "root-dir",
    default: "/var/lib/kubelet",
    topic: "Directories",
    help: "Where the agent keeps volumes and state.",
    validate: absolutePath,
  }),
  podLogsDir: option(text("DIR"), {
    flag: "pod-logs-dir",
    default: "/var/log/pods",
    topic: "Directories",
    help: "Root of the container logs.",
    validate: absolutePath,
  }),

  clusterDNS: option(list("IP,IP"), {
    flag: "cluster-dns",
    default: [],
    topic: "Network and DNS",
    help: "DNS servers of pods with dnsPolicy ClusterFirst; may be repeated.",
    validate: ips,
  }),
  clusterDomain: option(text("NAME"), {
    flag: "cluster-domain",
    default: "",
    topic: "Network and DNS",
    help: "DNS domain of the cluster, searched by pods.",
    validate: (value) => dnsName(value.replace(/\.$/, "")),
  }),
  resolvConf: option(text("FILE"), {
    flag: "resolv-conf",
    default: "/etc/resolv.conf",
    topic: "Network and DNS",
    help: "Resolver configuration that pods inherit; empty means none.",
  }),

  healthzPort: option(int, {
    flag: "healthz-port",
    default: 10248,
    topic: "Ports",
    help: "Port of /healthz; 0 turns it off.",
    validate: port,
  }),
  healthzBindAddress: option(text("IP"), {
    flag: "healthz-bind-address",
    default: "127.0.0.1",
    topic: "Ports",
    help: "Address that the health port listens on.",
    validate: ip,
  }),
  readOnlyPort: option(int, {
    flag: "read-only-port",
    default: 10255,
    topic: "Ports",
    help: "Port of /healthz, /pods and /metrics without authentication; 0 turns it off.",
    validate: port,
  }),
  address: option(text("IP"), {
    flag: "address",
    default: "0.0.0.0",
    topic: "Ports",
    help: "Address that the read-only port listens on.",
    validate: ip,
  }),
  localApiSocket: option(text("PATH"), {
    flag: "local-api-socket",
    default: "",
    topic: "Ports",
    help: "Unix socket for `kubelet ps`, `logs`, `explain` and `events`; empty means ROOT-DIR/kubelet.sock.",
    validate: (value) => (value === "" ? undefined : absolutePath(value)),
  }),

  verbosity: option(int, {
    flag: "v",
    short: "v",
    default: 0,
    topic: "Logging",
    live: true,
    help: "How much to log: 0 is normal, 2 tells more, 4 and above is for finding faults.",
    validate: atLeast(0),
  }),
  vmodule: option(text("PATTERN=N,..."), {
    flag: "vmodule",
    default: "",
    topic: "Logging",
    live: true,
    help: "Verbosity of single files (text format only).",
    validate: moduleLevels,
  }),
  loggingFormat: option(oneOf("text", "json"), {
    flag: "logging-format",
    default: "text",
    topic: "Logging",
    help: "Form of the log lines.",
  }),

  version: option(
    { ...text("true|raw"), bare: "true" },
    { flag: "version", default: "false", topic: "General", help: "Print the version and exit.", validate: filled },
  ),
  help: option(bool, { flag: "help", short: "h", default: false, topic: "General", help: "Print this help and exit." }),
} as const satisfies OptionTable;

/** The parsed settings of the agent. */
export type AgentOptions = Values<typeof agentOptions>;
