import type { IdMapping, RuntimeImage, SandboxConfig } from "../../adapters/runtime/port.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { Container, Pod, ResourceStatus } from "../../model/generated/types.ts";
import type { HttpRequest } from "../../model/http-action.ts";
import type { ObjectSource } from "../../model/object-source.ts";
import type { CgroupValues } from "../../model/pod-cgroup-values.ts";
import { orderPodIps } from "../../model/pod-ips.ts";
import type { DnsFacts } from "../config/dns.ts";
import type { LimitFacts } from "../config/linux-resources.ts";
import type { PodPaths } from "../config/paths.ts";
import type { PodJournal } from "../journal.ts";
import type { ExecutorRuntime } from "../observe/recording-runtime.ts";
import type { SecurityRules } from "../plan/refusal.ts";
import type { PodFiles } from "../pod-files.ts";
import type { StartSlot } from "../worker/start-slot.ts";
import type { ContainerContributor } from "./contributors/contributor.ts";
import type { PreStopHooks } from "./pre-stop-hooks.ts";

/** Ensures that a container's image is present. Rejects with a `StartError` (image reasons). */
export interface ImageProvider {
  ensure(
    request: {
      readonly pod: Pod;
      readonly container: Container;
      readonly journal: PodJournal;
      readonly slot: { release(): void };
      /** Called with what the pull waits for, and with undefined once it waits no longer. */
      onWait?(text: string | undefined): void;
      /** What the runtime gets with the pull; missing before there is a sandbox. */
      sandbox?(): Promise<SandboxConfig>;
      /** The pod's runtime handler, empty for the default one. */
      runtimeHandler?(): Promise<string>;
    },
    options: Abortable,
  ): Promise<{ ref: string; image: RuntimeImage }>;
}

/** A directory or a block device of the host, or an image that the runtime mounts. */
export type VolumeSource =
  /** What is the user's (a hostPath) is not labelled for the pod, unless `relabels` says otherwise. */
  | {
      readonly kind: "path";
      readonly path: string;
      readonly readonly: boolean;
      readonly isUsers?: boolean;
      readonly relabels?: boolean;
    }
  | { readonly kind: "device"; readonly path: string; readonly readonly: boolean }
  | { readonly kind: "image"; readonly reference: string; readonly pullPolicy: string };

/** Volumes as the ring needs them. */
export interface VolumeProvider {
  /**
   * Makes every volume of the pod ready; safe to repeat. Goes on trying until they are, the signal aborts or a limit is
   * over; `onWait` hears what is waited for, since when and why.
   */
  prepare(pod: Pod, options: Abortable & { onWait?: (detail: string) => void }): Promise<void>;
  /**
   * Whether everything that the pod's volumes are made from is there, so that making them is a matter of moments. Never
   * rejects.
   */
  isAtHand(pod: Pod, options: Abortable): Promise<boolean>;
  /** What a container gets of a volume that is ready. */
  source(pod: Pod, volume: string): VolumeSource;
  /** Groups that processes of the pod need to use its volumes. */
  groups(pod: Pod): readonly number[];
  /** Mounts a part of a volume, never anything outside it, and answers where. */
  subPath(
    pod: Pod,
    mount: { volume: string; container: string; index: number; subPath: string },
    options: Abortable,
  ): Promise<string>;
  /**
   * Ends what processes of a pod that terminates wait for from servers of its volumes that do not answer. Safe to repeat.
   */
  release(uid: string, options: Abortable): Promise<void>;
  /** Takes down what `prepare` made; never touches what belongs to the user. Safe to repeat. */
  teardown(uid: string, options: Abortable): Promise<void>;
}

/** Resource claims as the ring needs them. */
export interface ClaimProvider {
  /** Has the claims of the pod prepared, if it has any; safe to repeat. Containers get them by a contributor. */
  prepare(pod: Pod, options: Abortable): Promise<void>;
  /** True from `prepare` to `unprepare`. */
  holds(uid: string): boolean;
  /** Undoes `prepare` once the containers have stopped. Safe to repeat, and for a pod without claims. */
  unprepare(uid: string, options: Abortable): Promise<void>;
}

/** Reports the health of what the node allocated to a container. */
export interface ResourceHealthProvider {
  /** Entries of the container's `allocatedResourcesStatus`. */
  healthOf(pod: Pod, container: Container): readonly ResourceStatus[];
}

/** Cgroups of pods. */
export interface PodCgroups {
  parentOf(pod: Pod): string;
  /** Makes the pod's cgroup with its limits; cheap to repeat. */
  ensure(pod: Pod, options?: { growOnly?: boolean }): Promise<void>;
  /** Whether the pod's cgroup is there. */
  exists(pod: Pod): boolean;
  /** Bytes that a container of the pod uses now; undefined when its cgroup is not found. */
  memoryUsage(pod: Pod, containerId: string): number | undefined;
  /** What the kernel has for the pod now; undefined when it has no cgroup. */
  read(pod: Pod): CgroupValues | undefined;
  /** Sets what all pods together have again, if somebody changed it. Never rejects. */
  refresh(): Promise<void>;
  /** UIDs of all pods that have a cgroup, whether anybody knows them or not. */
  uids(): readonly string[];
  /** Removes the pod's cgroup once nothing runs in it. */
  remove(uid: string): Promise<void>;
}

/** Facts about the node. */
export interface NodeFacts {
  readonly paths: PodPaths;
  readonly hostIps: readonly string[];
  /** How containers are limited; may change while the agent runs. */
  limits(): LimitFacts;
  /** What the node has for pods, by resource. */
  allocatable(): Readonly<Record<string, string>>;
  /** `containerd` …, the scheme of container ids. */
  readonly runtimeName: string;
  /** Changes with each start of the machine. */
  readonly bootId?: string | undefined;
  /** True if the runtime's handler of the pod supports recursive read-only mounts, as far as is known. */
  hasRecursiveReadOnly(pod: Pod): boolean;
  /** True if the status of a pod shows the images of its image volumes (feature gate ImageVolumeWithDigest). */
  readonly showsVolumeImages?: boolean;
  /** The kernel has SELinux on: what is mounted gets the label of the pod. */
  readonly hasSelinux?: boolean;
  /** Host access that pods may have; everything if missing. */
  security?(): SecurityRules;
  /** True if containers without a seccomp profile get RuntimeDefault. */
  readonly seccompDefault: boolean;
  /** Paths to mask on this machine besides the fixed ones. */
  readonly extraMaskedPaths: readonly string[];
  /** Marks the pods of this agent on a runtime that is shared with others. */
  readonly owner?: string;
  dns(): DnsFacts;
  hostsFile(): string;
}

/** Facts about a pod that come from the API server. */
export interface ClusterFacts {
  /** Environment variables of services; rejects while services have not been listed. */
  serviceVariables(pod: Pod, options: Abortable): Promise<ReadonlyMap<string, string>>;
  /** The runtime's handler for the pod's RuntimeClass; empty for the default one. */
  handlerOf(pod: Pod, options: Abortable): Promise<string>;
}

/** Everything that the executors act through. */
export interface ExecuteDeps {
  /** Records what passes through it, see `RecordingRuntime`. */
  readonly runtime: ExecutorRuntime;
  readonly images: ImageProvider;
  readonly volumes: VolumeProvider;
  /** Missing for a standalone agent. */
  readonly claims?: ClaimProvider | undefined;
  /** ConfigMaps and Secrets that variables come from. */
  readonly objects: ObjectSource;
  readonly files: PodFiles;
  readonly cgroups: PodCgroups;
  /** Ids for pods that have a user namespace of their own. */
  readonly users: { of(uid: string): Promise<IdMapping>; release(uid: string): Promise<void> };
  /** Missing for a standalone agent. */
  readonly cluster?: ClusterFacts;
  readonly node: NodeFacts;
  readonly clock: Clock;
  readonly log: Logger;
  /** What the node's capabilities (devices, cpusets, claims) add to containers, in order. */
  readonly contributors?: readonly ContainerContributor[];
  /** Those that report the health of devices. */
  readonly resourceHealth?: readonly ResourceHealthProvider[];
  /** For lifecycle hooks, see `hooks.ts`. */
  httpGet(request: HttpRequest, options: Abortable): Promise<{ readonly status: number }>;
}

/** One pod's run of actions. */
export interface PodRun {
  readonly pod: Pod;
  readonly journal: PodJournal;
  readonly slot: StartSlot;
  /** Aborts what may be interrupted: pull, volume wait, hook, kill. */
  readonly interrupt: AbortSignal;
  /** Aborts only when the agent has waited long enough while stopping: create and start are finished, then undone. */
  readonly finish: AbortSignal;
  /** The newest container of each name, by name, when the run began. */
  readonly ids: ReadonlyMap<string, string>;
  /** The address that hooks of the pod are asked at. */
  readonly podIp: string;
  /** The preStop hooks that have begun, also in earlier runs. */
  readonly preStops: PreStopHooks;
  /** Called with what the pull of a container's image waits for, and with undefined once it waits no longer. */
  onPullWait(container: string, text: string | undefined): void;
  /** The ready sandbox that containers go into, set by `createSandbox` or from what was observed. */
  sandbox: { id: string; attempt: number; ips: readonly string[] } | undefined;
  /** The pull for the first container in a new sandbox, which begins before the sandbox. */
  earlyPull?: {
    begin(sandboxAttempt: number): void;
    take(container: Container): Promise<{ ref: string; image: RuntimeImage }> | undefined;
  };
}

/** The addresses of a pod: those of the node on the host's network, else those of its sandbox. */
export function podIps({ node }: ExecuteDeps, pod: Pod, sandboxIps: readonly string[]): readonly string[] {
  return pod.spec.hostNetwork === true ? node.hostIps : orderPodIps(sandboxIps, node.hostIps);
}
