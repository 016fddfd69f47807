import {
  type ContainerConfig,
  type ContainerMount,
  type ContainerSecurity,
  type ImageAuth,
  type LinuxResources,
  type NamespaceOptions,
  RuntimeError,
  type SandboxConfig,
  type SecurityProfile,
} from "../runtime/port.ts";
import {
  type AuthConfig,
  type DeepPartial,
  MountPropagation,
  NamespaceMode,
  Protocol,
  SecurityProfile_ProfileType,
  Signal,
  SupplementalGroupsPolicy,
  type ContainerConfig as WireContainerConfig,
  type LinuxContainerSecurityContext as WireContainerSecurity,
  type NamespaceOption as WireNamespaces,
  type SecurityProfile as WireProfile,
  type LinuxContainerResources as WireResources,
  type PodSandboxConfig as WireSandboxConfig,
} from "./generated/cri.ts";

type Wire<T> = DeepPartial<T>;

const NAMESPACE_MODES = {
  pod: NamespaceMode.POD,
  container: NamespaceMode.CONTAINER,
  node: NamespaceMode.NODE,
  target: NamespaceMode.TARGET,
} as const;

const PROFILES = {
  runtimeDefault: SecurityProfile_ProfileType.RuntimeDefault,
  unconfined: SecurityProfile_ProfileType.Unconfined,
  localhost: SecurityProfile_ProfileType.Localhost,
} as const;

const PROPAGATIONS = {
  private: MountPropagation.PROPAGATION_PRIVATE,
  hostToContainer: MountPropagation.PROPAGATION_HOST_TO_CONTAINER,
  bidirectional: MountPropagation.PROPAGATION_BIDIRECTIONAL,
} as const;

/** A sandbox's configuration as CRI has it. */
export function toSandboxConfig(config: SandboxConfig): Wire<WireSandboxConfig> {
  const { metadata, dns, linux } = config;
  const { security } = linux;
  return {
    metadata: { ...metadata },
    hostname: config.hostname,
    logDirectory: config.logDirectory,
    ...(dns && { dnsConfig: { servers: [...dns.servers], searches: [...dns.searches], options: [...dns.options] } }),
    portMappings: config.portMappings.map((port) => ({ ...port, protocol: Protocol[port.protocol] })),
    labels: { ...config.labels },
    annotations: { ...config.annotations },
    linux: {
      cgroupParent: linux.cgroupParent,
      sysctls: { ...linux.sysctls },
      ...(linux.resources && { resources: toResources(linux.resources) }),
      ...(linux.overhead && { overhead: toResources(linux.overhead) }),
      securityContext: {
        ...toSecurityBasics(security),
        readonlyRootfs: security.readonlyRootfs ?? false,
      },
    },
  };
}

/** A container's configuration as CRI has it. Rejects with `InvalidArgument` on a stop signal that CRI does not know. */
export function toContainerConfig(config: ContainerConfig): Wire<WireContainerConfig> {
  return {
    metadata: { name: config.name, attempt: config.attempt },
    image: { image: config.image.ref, userSpecifiedImage: config.image.userSpecified },
    command: [...config.command],
    args: [...config.args],
    workingDir: config.workingDir,
    envs: config.envs.map(({ name, value }) => ({ key: name, value: Buffer.from(value) })),
    mounts: config.mounts.map(toMount),
    devices: config.devices.map((device) => ({ ...device })),
    CDIDevices: config.cdiDevices.map((name) => ({ name })),
    labels: { ...config.labels },
    annotations: { ...config.annotations },
    logPath: config.logPath,
    stdin: config.stdin,
    stdinOnce: config.stdinOnce,
    tty: config.tty,
    stopSignal: toSignal(config.stopSignal),
    linux: {
      resources: toResources(config.linux.resources),
      securityContext: toContainerSecurity(config.linux.security),
    },
  };
}

/** Limits as CRI has them; what is absent is left to the runtime. */
export function toResources(resources: LinuxResources): Wire<WireResources> {
  return {
    cpuPeriod: whole(resources.cpuPeriod),
    cpuQuota: whole(resources.cpuQuota),
    cpuShares: whole(resources.cpuShares),
    memoryLimitInBytes: whole(resources.memoryLimitBytes),
    oomScoreAdj: whole(resources.oomScoreAdj),
    cpusetCpus: resources.cpusetCpus ?? "",
    cpusetMems: resources.cpusetMems ?? "",
    hugepageLimits: (resources.hugepageLimits ?? []).map(({ pageSize, limit }) => ({ pageSize, limit: whole(limit) })),
    unified: { ...resources.unified },
    memorySwapLimitInBytes: whole(resources.memorySwapLimitBytes),
  };
}

/** Registry credentials as CRI has them. */
export function toAuth(auth: ImageAuth): Wire<AuthConfig> {
  return { ...auth };
}

/** What the security contexts of sandboxes and containers have in common. */
function toSecurityBasics(security: SandboxConfig["linux"]["security"] | ContainerSecurity) {
  const { runAsUser, runAsGroup, selinux, apparmor } = security;
  return {
    namespaceOptions: toNamespaces(security.namespaces),
    privileged: security.privileged,
    ...(runAsUser !== undefined && { runAsUser: { value: whole(runAsUser) } }),
    ...(runAsGroup !== undefined && { runAsGroup: { value: whole(runAsGroup) } }),
    supplementalGroups: security.supplementalGroups.map(whole),
    supplementalGroupsPolicy: SupplementalGroupsPolicy[security.supplementalGroupsPolicy ?? "Merge"],
    seccomp: toProfile(security.seccomp),
    ...(apparmor && { apparmor: toProfile(apparmor) }),
    ...(selinux && { selinuxOptions: { ...selinux } }),
  };
}

function toContainerSecurity(security: ContainerSecurity): Wire<WireContainerSecurity> {
  return {
    ...toSecurityBasics(security),
    capabilities: {
      addCapabilities: [...security.addCapabilities],
      dropCapabilities: [...security.dropCapabilities],
    },
    runAsUsername: security.runAsUsername ?? "",
    readonlyRootfs: security.readonlyRootfs,
    noNewPrivs: security.noNewPrivs,
    maskedPaths: [...security.maskedPaths],
    readonlyPaths: [...security.readonlyPaths],
  };
}

function toNamespaces(options: NamespaceOptions): Wire<WireNamespaces> {
  return {
    network: NAMESPACE_MODES[options.network],
    pid: NAMESPACE_MODES[options.pid],
    ipc: NAMESPACE_MODES[options.ipc],
    targetId: options.targetId ?? "",
    ...(options.users && {
      usernsOptions: { mode: NamespaceMode.POD, uids: [{ ...options.users }], gids: [{ ...options.users }] },
    }),
  };
}

function toProfile(profile: SecurityProfile): Wire<WireProfile> {
  return { profileType: PROFILES[profile.type], localhostRef: profile.localhostRef ?? "" };
}

function toMount(mount: ContainerMount): Wire<WireContainerConfig["mounts"][number]> {
  return {
    containerPath: mount.containerPath,
    hostPath: mount.hostPath,
    readonly: mount.readonly,
    recursiveReadOnly: mount.recursiveReadOnly ?? false,
    selinuxRelabel: mount.selinuxRelabel ?? false,
    propagation: PROPAGATIONS[mount.propagation],
    ...(mount.users && { uidMappings: [{ ...mount.users }], gidMappings: [{ ...mount.users }] }),
    ...(mount.image && { image: { image: mount.image.ref }, imageSubPath: mount.image.subPath }),
  };
}

function toSignal(name: string | undefined): Signal {
  if (name === undefined || name === "") return Signal.RUNTIME_DEFAULT;
  if (!isSignal(name)) throw new RuntimeError("InvalidArgument", `unknown stop signal ${JSON.stringify(name)}`);
  return Signal[name];
}

function isSignal(name: string): name is keyof typeof Signal {
  return Object.hasOwn(Signal, name);
}

/** A whole number for an int64 field: CRI has no fractions, and BigInt throws on them. */
function whole(value: number | undefined): bigint {
  return BigInt(Math.trunc(value ?? 0));
}
