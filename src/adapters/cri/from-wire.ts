import { clip } from "../../lib/bounded-text.ts";
import type { ContainerState } from "../../model/observed.ts";
import type {
  ContainerStatus,
  ContainerSummary,
  FilesystemUsage,
  RuntimeImage,
  RuntimeStatus,
  SandboxMetadata,
  SandboxStatus,
  SandboxSummary,
  WritableLayer,
} from "../runtime/port.ts";
import {
  NamespaceMode,
  PodSandboxState,
  Signal,
  type Container as WireContainer,
  ContainerState as WireContainerState,
  type ContainerStats as WireContainerStats,
  type ContainerStatus as WireContainerStatus,
  type FilesystemUsage as WireFilesystemUsage,
  type Image as WireImage,
  type PodSandboxMetadata as WireMetadata,
  type PodSandbox as WireSandbox,
  type PodSandboxStatus as WireSandboxStatus,
  type StatusResponse as WireStatus,
} from "./generated/cri.ts";

const STATES: Readonly<Record<WireContainerState, ContainerState>> = {
  [WireContainerState.CONTAINER_CREATED]: "created",
  [WireContainerState.CONTAINER_RUNNING]: "running",
  [WireContainerState.CONTAINER_EXITED]: "exited",
  [WireContainerState.CONTAINER_UNKNOWN]: "unknown",
};

/** What a reason or a message of the runtime may take, in bytes. */
const TEXT_BYTES = 4096;

/** Unix nanoseconds as wall-clock milliseconds; unset times (0, or Go's zero time before 1970) are 0. */
export function toMillis(nanoseconds: bigint): number {
  return nanoseconds <= 0n ? 0 : Number(nanoseconds / 1_000_000n);
}

/** Undefined for a container whose layer the runtime has not measured yet: containerd reports 0 bytes without a time. */
export function fromContainerStats({ attributes, writableLayer }: WireContainerStats): WritableLayer | undefined {
  if (attributes === undefined || writableLayer?.usedBytes === undefined || writableLayer.timestamp <= 0n)
    return undefined;
  return {
    id: attributes.id,
    name: attributes.metadata?.name ?? "",
    labels: attributes.labels,
    bytes: Number(writableLayer.usedBytes.value),
    inodes: Number(writableLayer.inodesUsed?.value ?? 0),
    at: toMillis(writableLayer.timestamp),
  };
}

export function fromSandbox(sandbox: WireSandbox): SandboxSummary {
  return {
    id: sandbox.id,
    metadata: fromMetadata(sandbox.metadata),
    state: fromSandboxState(sandbox.state),
    createdAt: toMillis(sandbox.createdAt),
    labels: sandbox.labels,
    annotations: sandbox.annotations,
  };
}

export function fromSandboxStatus(status: WireSandboxStatus): SandboxStatus {
  const network = status.network;
  const ips = [network?.ip ?? "", ...(network?.additionalIps ?? []).map(({ ip }) => ip)];
  return {
    id: status.id,
    metadata: fromMetadata(status.metadata),
    state: fromSandboxState(status.state),
    createdAt: toMillis(status.createdAt),
    labels: status.labels,
    annotations: status.annotations,
    hostNetwork: status.linux?.namespaces?.options?.network === NamespaceMode.NODE,
    ips: ips.filter((ip) => ip !== ""),
  };
}

export function fromContainer(container: WireContainer): ContainerSummary {
  return {
    id: container.id,
    sandboxId: container.podSandboxId,
    name: container.metadata?.name ?? "",
    attempt: container.metadata?.attempt ?? 0,
    state: fromContainerState(container.state),
    createdAt: toMillis(container.createdAt),
    image: container.image?.image ?? "",
    imageRef: container.imageRef,
    ...(container.imageId && { imageId: container.imageId }),
    ...(container.image?.runtimeHandler && { imageHandler: container.image.runtimeHandler }),
    labels: container.labels,
    annotations: container.annotations,
  };
}

export function fromContainerStatus(status: WireContainerStatus): ContainerStatus {
  return {
    id: status.id,
    name: status.metadata?.name ?? "",
    attempt: status.metadata?.attempt ?? 0,
    state: fromContainerState(status.state),
    createdAt: toMillis(status.createdAt),
    startedAt: toMillis(status.startedAt),
    finishedAt: toMillis(status.finishedAt),
    exitCode: status.exitCode,
    reason: clip(status.reason, TEXT_BYTES),
    message: clip(status.message, TEXT_BYTES),
    image: status.image?.image ?? "",
    imageRef: status.imageRef,
    labels: status.labels,
    annotations: status.annotations,
    logPath: status.logPath,
    mounts: status.mounts.map(({ containerPath, hostPath, image }) => ({
      containerPath,
      hostPath,
      ...(image?.image && { image: image.image }),
    })),
    ...fromUser(status),
    ...fromSignal(status),
  };
}

function fromUser({ user }: WireContainerStatus): Pick<ContainerStatus, "user"> {
  const linux = user?.linux;
  if (linux === undefined) return {};
  const { uid, gid, supplementalGroups } = linux;
  return { user: { uid: Number(uid), gid: Number(gid), groups: supplementalGroups.map(Number) } };
}

function fromSignal({ stopSignal }: WireContainerStatus): Pick<ContainerStatus, "stopSignal"> {
  const name = Object.entries(Signal).find(([, value]) => value === stopSignal)?.[0];
  return stopSignal === Signal.RUNTIME_DEFAULT || name === undefined ? {} : { stopSignal: name };
}

/** Ready and network ready are the two conditions that CRI requires; a missing one counts as not ready. */
export function fromStatus(answer: WireStatus): RuntimeStatus {
  const conditions = answer.status?.conditions ?? [];
  const holds = (type: string): boolean => conditions.some((c) => c.type === type && c.status);
  const required = ["RuntimeReady", "NetworkReady"];
  const failing = conditions.filter((c) => required.includes(c.type) && !c.status);
  const missing = required.filter((type) => !conditions.some((c) => c.type === type));
  const words = [
    ...failing.map((c) => `${c.type}=false reason:${c.reason} message:${c.message}`),
    ...missing.map((type) => `${type} is not reported`),
  ];
  return {
    ready: holds("RuntimeReady"),
    networkReady: holds("NetworkReady"),
    message: clip(words.join(", "), TEXT_BYTES),
    handlers: answer.runtimeHandlers.map(({ name, features }) => ({
      name,
      recursiveReadOnlyMounts: features?.recursiveReadOnlyMounts ?? false,
      userNamespaces: features?.userNamespaces ?? false,
    })),
    supplementalGroupsPolicy: answer.features?.supplementalGroupsPolicy ?? false,
  };
}

export function fromImage(image: WireImage): RuntimeImage {
  return {
    id: image.id,
    tags: image.repoTags,
    digests: image.repoDigests,
    sizeBytes: Number(image.size),
    ...(image.uid !== undefined && { uid: Number(image.uid.value) }),
    username: image.username,
    pinned: image.pinned,
    ...(image.spec?.runtimeHandler && { runtimeHandler: image.spec.runtimeHandler }),
  };
}

export function fromFilesystem(usage: WireFilesystemUsage): FilesystemUsage {
  return {
    mountpoint: usage.fsId?.mountpoint ?? "",
    usedBytes: Number(usage.usedBytes?.value ?? 0n),
    inodesUsed: Number(usage.inodesUsed?.value ?? 0n),
  };
}

function fromMetadata(metadata: WireMetadata | undefined): SandboxMetadata {
  return {
    name: metadata?.name ?? "",
    namespace: metadata?.namespace ?? "",
    uid: metadata?.uid ?? "",
    attempt: metadata?.attempt ?? 0,
  };
}

/** A number outside the enumeration (a newer runtime) is `unknown`. */
function fromContainerState(state: WireContainerState): ContainerState {
  return STATES[state] ?? "unknown";
}

function fromSandboxState(state: PodSandboxState): "ready" | "notReady" {
  return state === PodSandboxState.SANDBOX_READY ? "ready" : "notReady";
}

/** The sandbox image in containerd's own configuration, as its verbose status holds it. */
export function sandboxImageOf(config: string | undefined): string | undefined {
  try {
    const parsed: unknown = JSON.parse(config ?? "{}");
    const image: unknown = typeof parsed === "object" && parsed !== null && Reflect.get(parsed, "sandboxImage");
    return typeof image === "string" && image !== "" ? image : undefined;
  } catch {
    return undefined;
  }
}
