import type { Abortable } from "../../lib/abort.ts";
import { CodedError } from "../../lib/errors.ts";
import type { ContainerState, ObservedContainer } from "../../model/observed.ts";
import type { CgroupUsage, InterfaceUsage } from "../../model/usage.ts";

/** Usage of a sandbox or container, as the runtime measures it. */
export interface RuntimeUsage {
  /** Of the sandbox or container. */
  readonly id: string;
  readonly usage: CgroupUsage;
  /** Of a sandbox. */
  readonly network?: readonly InterfaceUsage[];
}

/** Metrics of pods and containers, as the runtime lists them. */
export interface RuntimeMetrics {
  readonly families: readonly { readonly name: string; readonly help: string; readonly labels: readonly string[] }[];
  readonly samples: readonly {
    readonly name: string;
    readonly type: "counter" | "gauge";
    /** In the order of the family's labels. */
    readonly labels: readonly string[];
    readonly value: number;
    /** Wall-clock milliseconds. */
    readonly at: number;
  }[];
}

/** What runtimes measure by themselves; those that do not reject with `Unimplemented`. */
export interface RuntimeStatsPort {
  usages(options: Abortable): Promise<readonly RuntimeUsage[]>;
  metrics(options: Abortable): Promise<RuntimeMetrics>;
}

/**
 * The container runtime as the agent sees it. Implemented by `CriRuntime` (gRPC), and by `FakeRuntime`;
 * `test/contract/runtime.ts` is the suite that both pass. No bigint and no protobuf type crosses this line.
 * Every method may reject with a `RuntimeError`; stop and remove are idempotent (an id that is gone is success).
 */
export interface RuntimePort {
  /** Absent where the runtime cannot be asked for statistics. */
  readonly stats?: RuntimeStatsPort;
  /**
   * The kernel has killed a process of this container for its memory: the runtime may not have noticed, as its cgroup is
   * gone at once if all processes are killed. The container counts as OOMKilled when it ends.
   */
  killedForMemory?(containerId: string): void;
  version(options: Abortable): Promise<RuntimeVersion>;
  status(options: Abortable): Promise<RuntimeStatus>;
  /** The cgroup driver of the runtime, or undefined where it does not report it (containerd 1.6). */
  cgroupDriver(options: Abortable): Promise<"cgroupfs" | "systemd" | undefined>;
  /** The image that sandboxes are made from, or undefined where the runtime does not report it. */
  sandboxImage(options: Abortable): Promise<string | undefined>;

  runSandbox(config: SandboxConfig, handler: string, options: Abortable): Promise<string>;
  stopSandbox(id: string, options: Abortable): Promise<void>;
  removeSandbox(id: string, options: Abortable): Promise<void>;
  sandboxStatus(id: string, options: Abortable): Promise<SandboxStatus>;
  listSandboxes(filter: ListFilter, options: Abortable): Promise<readonly SandboxSummary[]>;
  /** Updates the resources of the whole pod after a resize; does nothing where the runtime has no such call. */
  updateSandboxResources(
    id: string,
    limits: { readonly resources: LinuxResources; readonly overhead?: LinuxResources },
    options: Abortable,
  ): Promise<void>;

  createContainer(request: CreateContainerRequest, options: Abortable): Promise<string>;
  startContainer(id: string, options: Abortable): Promise<void>;
  /** Signals the container and kills it after `graceSeconds`; resolves when it has stopped. */
  stopContainer(id: string, graceSeconds: number, options: Abortable): Promise<void>;
  removeContainer(id: string, options: Abortable): Promise<void>;
  containerStatus(id: string, options: Abortable): Promise<ContainerStatus>;
  listContainers(filter: ListFilter, options: Abortable): Promise<readonly ContainerSummary[]>;
  /** What containers wrote to their own root filesystems; those that the runtime has not measured yet are missing. */
  writableLayers(filter: ListFilter, options: Abortable): Promise<readonly WritableLayer[]>;
  updateContainerResources(id: string, resources: LinuxResources, options: Abortable): Promise<void>;
  reopenContainerLog(id: string, options: Abortable): Promise<void>;
  /** Sets the addresses that the pods of this node get (`10.1.0.0/24`, or one of each family, by a comma). */
  setPodCidr(cidr: string, options: Abortable): Promise<void>;

  /** Runs a command to its end. `timeoutSeconds` 0 means no limit. A command that outlives it rejects with `Timeout`. */
  execSync(id: string, command: ExecCommand, options: Abortable): Promise<ExecResult>;
  /** URLs of the runtime's streaming server. */
  exec(id: string, request: ExecStreams & { command: readonly string[] }, options: Abortable): Promise<string>;
  attach(id: string, request: ExecStreams, options: Abortable): Promise<string>;
  portForward(sandboxId: string, ports: readonly number[], options: Abortable): Promise<string>;
  /** Writes the state of a running container to a tar file. `timeoutSeconds` 0 means the runtime's own limit. */
  checkpointContainer(id: string, request: CheckpointRequest, options: Abortable): Promise<void>;

  /**
   * Wake-ups about containers and sandboxes, from the best source that the runtime has. It never ends by itself:
   * it reconnects with back-off until the signal aborts, and yields `{ kind: "resync" }` first and after each
   * (re)connection, because events may have been missed; the reader must then list everything.
   * Events older than the subscription (containerd 2 replays five minutes of them) are dropped.
   */
  events(options: Abortable): AsyncIterable<RuntimeEvent>;
  /** Where `events` come from at this moment. */
  readonly eventSource: "cri" | "containerd" | "relist" | "none";
}

/** The image side of the runtime. */
export interface ImagePort {
  listImages(options: Abortable): Promise<readonly RuntimeImage[]>;
  /** Undefined when the image is not there. `runtimeHandler` selects the copy that was pulled for it. */
  imageStatus(
    image: string,
    options: Abortable & { readonly runtimeHandler?: string | undefined },
  ): Promise<RuntimeImage | undefined>;
  /** Resolves to the image reference (id or digest) that containers are created from. No deadline of its own. */
  pullImage(image: string, request: ImagePull, options: Abortable): Promise<string>;
  /**
   * How far these running pulls are, by image; an image that is missing is not known. Undefined where the runtime does
   * not report it (everything but containerd).
   */
  pullProgress(
    pulls: readonly RunningPull[],
    options: Abortable,
  ): Promise<ReadonlyMap<string, PullProgress> | undefined>;
  /** `runtimeHandler` selects the copy that was pulled for it; absent means that of the default one. */
  removeImage(image: string, options: Abortable & { readonly runtimeHandler?: string | undefined }): Promise<void>;
  imageFilesystems(options: Abortable): Promise<ImageFilesystems>;
}

/** What a pull carries beside the image name. */
export interface ImagePull {
  readonly auth?: ImageAuth;
  /** Of the pod: snapshotters and registry plugins of the runtime read them. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly sandbox?: SandboxConfig;
  /** Whose copy of the image is pulled; absent means that of the default one. */
  readonly runtimeHandler?: string;
}

/** A pull that was begun at this wall-clock time, in milliseconds. */
export interface RunningPull {
  readonly image: string;
  readonly since: number;
}

/** How far a pull is. Only what it has to transfer counts: layers that were there before do not. */
export interface PullProgress {
  readonly doneBytes: number;
  /** Undefined until the image's manifest is there. */
  readonly totalBytes?: number;
  /** True while a transfer of the pull is open; false while it resolves the name, waits for another, or unpacks. */
  readonly isTransferring: boolean;
  /** True if the bytes are those of several pulls of one repository, which cannot be told apart. */
  readonly isShared?: boolean;
  /** The digest of a blob of which more was received than it has: the registry may never end. */
  readonly oversized?: string;
}

/** Foreign gRPC codes, mapped once. `Unavailable`, `Timeout` and `ResourceExhausted` are worth a retry. */
export type RuntimeErrorCode =
  | "NotFound"
  | "AlreadyExists"
  | "InvalidArgument"
  | "FailedPrecondition"
  | "Unimplemented"
  | "Unavailable"
  | "Timeout"
  | "ResourceExhausted"
  | "PermissionDenied"
  | "Unknown";

/** Any failure of the runtime. `message` is the runtime's own words without the gRPC prefix. */
export class RuntimeError extends CodedError<RuntimeErrorCode> {}

export interface RuntimeVersion {
  readonly name: string;
  readonly version: string;
  readonly apiVersion: string;
}

export interface RuntimeStatus {
  readonly ready: boolean;
  readonly networkReady: boolean;
  /** Reason and message of what is not ready, empty when all is well. */
  readonly message: string;
  readonly handlers: readonly RuntimeHandler[];
  readonly supplementalGroupsPolicy: boolean;
}

export interface RuntimeHandler {
  readonly name: string;
  readonly recursiveReadOnlyMounts: boolean;
  readonly userNamespaces: boolean;
}

/** Selects by id or by all of these labels; empty selects all. */
export interface ListFilter {
  readonly id?: string;
  readonly sandboxId?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** The writable layer of a container; `at` is the wall-clock time of the runtime's measurement in milliseconds. */
export interface WritableLayer {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly bytes: number;
  readonly inodes: number;
  readonly at: number;
}

export type RuntimeEvent =
  | { readonly kind: "resync" }
  | {
      readonly kind: "container";
      readonly type: "created" | "started" | "stopped" | "deleted" | "oom";
      /** A container's or a sandbox's id. */
      readonly id: string;
      /** The pod's UID, where the source reports it. */
      readonly podUid?: string;
      /** Wall-clock milliseconds. */
      readonly at: number;
    };

export interface SandboxMetadata {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly attempt: number;
}

export interface SandboxSummary {
  readonly id: string;
  readonly metadata: SandboxMetadata;
  readonly state: "ready" | "notReady";
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface SandboxStatus extends SandboxSummary {
  readonly hostNetwork: boolean;
  /** Primary first. */
  readonly ips: readonly string[];
}

export interface ContainerSummary {
  readonly id: string;
  readonly sandboxId: string;
  readonly name: string;
  readonly attempt: number;
  readonly state: ContainerState;
  readonly createdAt: number;
  readonly image: string;
  readonly imageRef: string;
  /** The id of the image; absent where the runtime does not report it (containerd 1). */
  readonly imageId?: string;
  /** The runtime handler that its image was pulled for; absent means the default one. */
  readonly imageHandler?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** What the runtime reports of one container; after one that is provisional, another `stopped` event follows. */
export type ContainerStatus = Omit<ObservedContainer, "sandboxId" | "hash">;

export type NamespaceMode = "pod" | "container" | "node" | "target";

/** A range of ids of a user namespace, and what they are on the host; users and groups alike. */
export interface IdMapping {
  readonly hostId: number;
  readonly containerId: number;
  readonly length: number;
}

export interface NamespaceOptions {
  readonly network: NamespaceMode;
  readonly pid: NamespaceMode;
  readonly ipc: NamespaceMode;
  readonly targetId?: string;
  /** The pod has a user namespace of its own; absent means the host's. */
  readonly users?: IdMapping;
}

export interface SecurityProfile {
  readonly type: "runtimeDefault" | "unconfined" | "localhost";
  readonly localhostRef?: string;
}

export interface SelinuxOptions {
  readonly user?: string;
  readonly role?: string;
  readonly type?: string;
  readonly level?: string;
}

export interface PortMapping {
  readonly protocol: "TCP" | "UDP" | "SCTP";
  readonly containerPort: number;
  readonly hostPort: number;
  readonly hostIp: string;
}

export interface LinuxResources {
  readonly cpuPeriod?: number;
  readonly cpuQuota?: number;
  readonly cpuShares?: number;
  readonly memoryLimitBytes?: number;
  readonly oomScoreAdj?: number;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
  readonly hugepageLimits?: readonly { readonly pageSize: string; readonly limit: number }[];
  readonly unified?: Readonly<Record<string, string>>;
  readonly memorySwapLimitBytes?: number;
}

export interface SandboxConfig {
  readonly metadata: SandboxMetadata;
  readonly hostname: string;
  readonly logDirectory: string;
  readonly dns?: {
    readonly servers: readonly string[];
    readonly searches: readonly string[];
    readonly options: readonly string[];
  };
  readonly portMappings: readonly PortMapping[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly linux: {
    readonly cgroupParent: string;
    readonly sysctls: Readonly<Record<string, string>>;
    readonly resources?: LinuxResources;
    readonly overhead?: LinuxResources;
    readonly security: {
      readonly namespaces: NamespaceOptions;
      readonly privileged: boolean;
      readonly readonlyRootfs?: boolean;
      readonly runAsUser?: number;
      readonly runAsGroup?: number;
      readonly supplementalGroups: readonly number[];
      readonly supplementalGroupsPolicy?: "Merge" | "Strict";
      readonly seccomp: SecurityProfile;
      readonly apparmor?: SecurityProfile;
      readonly selinux?: SelinuxOptions;
    };
  };
}

export interface ContainerMount {
  readonly containerPath: string;
  readonly hostPath: string;
  readonly readonly: boolean;
  readonly recursiveReadOnly?: boolean;
  readonly selinuxRelabel?: boolean;
  readonly propagation: "private" | "hostToContainer" | "bidirectional";
  /** How owners look inside the pod's user namespace. */
  readonly users?: IdMapping;
  /** The runtime mounts the content of this image, or a part of it, instead of `hostPath`. */
  readonly image?: { readonly ref: string; readonly subPath: string };
}

export interface ContainerConfig {
  readonly name: string;
  readonly attempt: number;
  readonly image: { readonly ref: string; readonly userSpecified: string };
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly workingDir: string;
  readonly envs: readonly { readonly name: string; readonly value: string }[];
  readonly mounts: readonly ContainerMount[];
  readonly devices: readonly {
    readonly containerPath: string;
    readonly hostPath: string;
    readonly permissions: string;
  }[];
  /** Fully qualified names of CDI devices, `vendor.com/class=name`, which the runtime resolves by its own files. */
  readonly cdiDevices: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Relative to the sandbox's log directory. */
  readonly logPath: string;
  readonly stdin: boolean;
  readonly stdinOnce: boolean;
  readonly tty: boolean;
  /** A signal's name such as `SIGUSR1`; absent means the image's own. */
  readonly stopSignal?: string;
  readonly linux: {
    readonly resources: LinuxResources;
    readonly security: ContainerSecurity;
  };
}

export interface ContainerSecurity {
  readonly namespaces: NamespaceOptions;
  readonly privileged: boolean;
  readonly readonlyRootfs: boolean;
  readonly noNewPrivs: boolean;
  readonly addCapabilities: readonly string[];
  readonly dropCapabilities: readonly string[];
  readonly runAsUser?: number;
  readonly runAsUsername?: string;
  readonly runAsGroup?: number;
  readonly supplementalGroups: readonly number[];
  readonly supplementalGroupsPolicy?: "Merge" | "Strict";
  readonly maskedPaths: readonly string[];
  readonly readonlyPaths: readonly string[];
  readonly seccomp: SecurityProfile;
  readonly apparmor?: SecurityProfile;
  readonly selinux?: SelinuxOptions;
}

export interface CreateContainerRequest {
  readonly sandboxId: string;
  readonly config: ContainerConfig;
  readonly sandbox: SandboxConfig;
}

export interface ExecCommand {
  readonly command: readonly string[];
  readonly timeoutSeconds: number;
}

export interface ExecResult {
  readonly exitCode: number;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

export interface CheckpointRequest {
  /** Absolute path of the file. */
  readonly location: string;
  readonly timeoutSeconds: number;
}

export interface ExecStreams {
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
}

export interface RuntimeImage {
  readonly id: string;
  readonly tags: readonly string[];
  readonly digests: readonly string[];
  readonly sizeBytes: number;
  /** Numeric user of the image, if it has one. */
  readonly uid?: number;
  readonly username: string;
  /** The runtime asks to keep it. */
  readonly pinned: boolean;
  /** The runtime handler that it was pulled for; absent means the default one. */
  readonly runtimeHandler?: string;
}

export interface ImageAuth {
  readonly username?: string;
  readonly password?: string;
  readonly auth?: string;
  readonly serverAddress?: string;
  readonly identityToken?: string;
  readonly registryToken?: string;
}

/** Where the runtime stores images, and where the writable layers of containers: often the same. */
export interface ImageFilesystems {
  readonly images: readonly FilesystemUsage[];
  /** Empty if the runtime does not report them apart (containerd 1). */
  readonly containers: readonly FilesystemUsage[];
}

export interface FilesystemUsage {
  readonly mountpoint: string;
  readonly usedBytes: number;
  readonly inodesUsed: number;
}
