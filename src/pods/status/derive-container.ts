import { containerHash } from "../../model/container-hash.ts";
import type {
  Container,
  ContainerState,
  ContainerStatus,
  Pod,
  ResourceRequirements,
  VolumeMount,
  VolumeMountStatus,
} from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import { type ContainerKind, isSidecar } from "../../model/pod-facts.ts";
import type { ContainerProbes } from "../../model/probe.ts";
import { mayRestart } from "../plan/restart-rules.ts";
import { UNKNOWN_EXIT_CODE } from "./lost-exits.ts";

/** The waiting state of a container that should run and does not; set by the worker. */
export interface WaitingReason {
  readonly reason: string;
  readonly message: string;
}

/** The waiting state of a container that RestartAllContainers removed. */
export const RESTARTING_ALL: WaitingReason = {
  reason: "RestartingAllContainers",
  message: "The container is removed because RestartAllContainers in place",
};

/** What the status of one container is derived from. */
export interface ContainerFacts {
  readonly pod: Pod;
  readonly observed: ObservedPod;
  readonly previous: ContainerStatus | undefined;
  readonly waiting: WaitingReason | undefined;
  readonly probes: ContainerProbes | undefined;
  readonly kind: ContainerKind;
  /** `containerd`, `cri-o` …: the scheme of `containerID`. */
  readonly runtimeName: string;
  /** No container of this pod will be started again. */
  readonly terminating: boolean;
  /** The runtime supports recursive read-only mounts. */
  readonly hasRecursiveReadOnly?: boolean;
  /** Image volumes show which image they are (feature gate ImageVolumeWithDigest). */
  readonly showsVolumeImages?: boolean;
  /** The actual resources of a running container. */
  actualOf?(container: ObservedContainer): ResourceRequirements | undefined;
  /** RestartAllContainers removed it. */
  readonly restartingAll?: boolean;
}

/** Derives the status of one container: `state` from its newest instance, `lastState` from the previous one. */
export function deriveContainerStatus(container: Container, facts: ContainerFacts): ContainerStatus {
  const instances = facts.observed.containers.filter((observed) => observed.name === container.name);
  const [newest, older] = instances;
  const known = newest === undefined ? withoutInstance(container, facts) : withInstance(newest, older, facts);
  const status = whileWaiting(container, known, { newest, facts });
  return {
    ...status,
    ...(facts.kind === "ephemeral" ? {} : { started: false }),
    ...resourcesOf(container, newest, facts),
    ...mountStatuses(container, newest, facts),
    ...readyFlags(container, status, facts),
  };
}

function withInstance(
  newest: ObservedContainer,
  older: ObservedContainer | undefined,
  facts: ContainerFacts,
): ContainerStatus {
  const containerID = `${facts.runtimeName}://${newest.id}`;
  return {
    name: newest.name,
    state: stateOf(newest, facts),
    lastState: lastStateOf(containerID, older, facts),
    ready: false,
    restartCount: restartCount(newest, containerID, facts.previous),
    image: newest.image,
    imageID: newest.imageRef,
    containerID,
    ...userOf(newest),
    ...(newest.stopSignal === undefined ? {} : { stopSignal: newest.stopSignal }),
  };
}

/** If the runtime lost the previous instance, its termination is taken from the last status. */
function lastStateOf(
  containerID: string,
  older: ObservedContainer | undefined,
  { previous, ...facts }: ContainerFacts,
): ContainerState {
  if (older?.state === "exited") return { terminated: ended(older, facts) };
  const terminated = previous?.containerID === containerID ? undefined : previous?.state?.terminated;
  return terminated === undefined ? (previous?.lastState ?? {}) : { terminated };
}

/** The restart count never decreases, also if the runtime lost earlier instances and counts anew. */
function restartCount(
  { attempt, state }: ObservedContainer,
  containerID: string,
  previous: ContainerStatus | undefined,
): number {
  if (previous === undefined) return attempt;
  const isOther = previous.containerID !== containerID;
  const isUncounted = isOther && state === "running" && previous.state?.terminated !== undefined;
  return Math.max(attempt, previous.restartCount + (isUncounted ? 1 : 0));
}

/**
 * Derives the status of a container of which the runtime has no instance. Its termination is kept, as in Kubernetes: a
 * container that must not run twice does not, and a completed pod stays completed.
 */
function withoutInstance(container: Container, facts: ContainerFacts): ContainerStatus {
  const { previous } = facts;
  const isRemoved = facts.restartingAll === true && !facts.terminating;
  if (previous?.state?.terminated !== undefined && !isRemoved) return previous;
  const waiting: ContainerStatus = {
    name: container.name,
    state: stateWithoutContainer(facts),
    lastState: previous?.lastState ?? {},
    ready: false,
    restartCount: previous?.restartCount ?? 0,
    image: container.image ?? "",
    imageID: "",
  };
  if (previous === undefined) return waiting;
  const hadInstance = previous.containerID !== undefined || previous.state?.waiting === undefined;
  if (isRemoved && hadInstance) return removed(waiting);
  if (previous.state?.running === undefined) return waiting;
  // One that must not be restarted is not waiting, also while others of the pod run.
  const isOver = !facts.terminating && !mayRestart(facts.pod, LOST, container);
  if (isOver) return { ...previous, state: { terminated: LOST } };
  return previous.lastState?.terminated === undefined ? vanished(waiting, facts) : waiting;
}

/** The status of a container that waits to be started: the waiting reason, and its previous termination. */
function whileWaiting(
  container: Container,
  status: ContainerStatus,
  { newest, facts }: { newest: ObservedContainer | undefined; facts: ContainerFacts },
): ContainerStatus {
  if (facts.waiting === undefined || !shouldWait(container, newest, facts)) return status;
  const terminated = status.state?.terminated;
  return {
    ...status,
    state: { waiting: facts.waiting },
    ...(terminated === undefined ? {} : { lastState: { terminated } }),
  };
}

function shouldWait(container: Container, newest: ObservedContainer | undefined, facts: ContainerFacts): boolean {
  if (facts.terminating) return false;
  if (facts.kind === "ephemeral") return newest === undefined || newest.state === "created";
  const lost = newest === undefined ? facts.previous?.state?.terminated : undefined;
  if (lost !== undefined && !mayRestart(facts.pod, lost, container)) return false;
  if (newest === undefined || newest.state === "created" || newest.state === "unknown") return true;
  if (newest.state === "running") return false;
  if (newest.hash !== containerHash(container)) return true;
  if (facts.kind === "init" && !isSidecar(container)) {
    return newest.exitCode !== 0 && mayRestart(facts.pod, newest, container);
  }
  return mayRestart(facts.pod, newest, container);
}

/** Derives ready and started from the state and the probe results of this instance. */
export function readyFlags(
  container: Container,
  status: Pick<ContainerStatus, "state" | "containerID">,
  { kind, probes }: Pick<ContainerFacts, "kind" | "probes">,
): { started?: boolean; ready: boolean } {
  if (kind === "ephemeral") return { ready: false };
  const running = status.state?.running !== undefined;
  if (kind === "init" && !isSidecar(container)) {
    return { started: running, ready: status.state?.terminated?.exitCode === 0 };
  }
  const own = probes !== undefined && status.containerID?.endsWith(`://${probes.containerId}`) === true;
  const started = running && (container.startupProbe === undefined || (own && probes.started === true));
  return { started, ready: started && (container.readinessProbe === undefined || (own && probes.ready === true)) };
}

/** True for the waiting reason of a container that is being created: nothing is wrong with it. */
export function isCreation(reason: string | undefined): boolean {
  return reason === "PodInitializing" || reason === "ContainerCreating";
}

function stateWithoutContainer({ pod }: ContainerFacts): ContainerState {
  const reason = (pod.spec.initContainers?.length ?? 0) > 0 ? "PodInitializing" : "ContainerCreating";
  return { waiting: { reason } };
}

function stateOf(container: ObservedContainer, facts: ContainerFacts): ContainerState {
  switch (container.state) {
    case "running":
      return { running: { startedAt: time(container.startedAt) } };
    case "exited":
      return { terminated: ended(container, facts) };
    case "created":
      return stateWithoutContainer(facts);
    case "unknown":
      return {
        terminated: {
          reason: "ContainerStatusUnknown",
          exitCode: 137,
          message: "The container could not be located when the pod was terminated",
        },
      };
  }
}

function ended(
  container: ObservedContainer,
  facts: Pick<ContainerFacts, "runtimeName">,
): NonNullable<ContainerState["terminated"]> {
  return {
    exitCode: container.exitCode,
    ...(container.reason === "" ? {} : { reason: container.reason }),
    ...(container.message === "" ? {} : { message: container.message }),
    startedAt: time(container.startedAt),
    finishedAt: time(container.finishedAt),
    containerID: `${facts.runtimeName}://${container.id}`,
  };
}

const LOST = {
  reason: "ContainerStatusUnknown",
  exitCode: UNKNOWN_EXIT_CODE,
  message: "The container could not be located when the pod was deleted.  The container used to be Running",
};

/** The termination of a container that ran and is no longer in the runtime. */
function vanished(status: ContainerStatus, facts: ContainerFacts): ContainerStatus {
  return {
    ...status,
    lastState: { terminated: LOST },
    restartCount: (facts.previous?.restartCount ?? 0) + (facts.terminating ? 0 : 1),
  };
}

/** The termination of a container that RestartAllContainers removed: replaces its own, as in Kubernetes. */
function removed(status: ContainerStatus): ContainerStatus {
  return {
    ...status,
    state: { waiting: RESTARTING_ALL },
    lastState: { terminated: { ...RESTARTING_ALL, exitCode: UNKNOWN_EXIT_CODE } },
    restartCount: status.restartCount + 1,
  };
}

/** Allocated and actual resources; they differ during a resize. */
function resourcesOf(
  container: Container,
  newest: ObservedContainer | undefined,
  facts: ContainerFacts,
): Pick<ContainerStatus, "allocatedResources" | "resources"> {
  const given = container.resources ?? {};
  const actual = newest?.state === "running" ? facts.actualOf?.(newest) : undefined;
  const requests = given.requests ?? {};
  return {
    ...(Object.keys(requests).length === 0 ? {} : { allocatedResources: requests }),
    resources: actual ?? given,
  };
}

function userOf(newest: ObservedContainer): Pick<ContainerStatus, "user"> {
  if (newest.user === undefined) return {};
  const { uid, gid, groups } = newest.user;
  return { user: { linux: { uid, gid, ...(groups.length === 0 ? {} : { supplementalGroups: groups }) } } };
}

/** `IfPossible` shows the effective value; with `Enabled` the container does not run if the runtime lacks it. */
function mountStatuses(
  container: Container,
  newest: ObservedContainer | undefined,
  { hasRecursiveReadOnly: canRecurse = false, showsVolumeImages = false }: ContainerFacts,
): { volumeMounts?: readonly VolumeMountStatus[] } {
  const mounts = container.volumeMounts ?? [];
  if (mounts.length === 0) return {};
  const imageOf = ({ mountPath }: VolumeMount): Pick<VolumeMountStatus, "volumeStatus"> => {
    const mounted = newest?.mounts.find(
      ({ containerPath, image }) => image !== undefined && containerPath === mountPath,
    );
    return mounted?.image === undefined ? {} : { volumeStatus: { image: { imageRef: mounted.image } } };
  };
  return {
    volumeMounts: mounts.map((mount) => ({
      name: mount.name,
      mountPath: mount.mountPath,
      ...(mount.readOnly === true ? { readOnly: true, recursiveReadOnly: recursion(mount, canRecurse) } : {}),
      ...(showsVolumeImages ? imageOf(mount) : {}),
    })),
  };
}

function recursion({ recursiveReadOnly }: VolumeMount, canRecurse: boolean): "Enabled" | "Disabled" {
  if (recursiveReadOnly === "Enabled") return "Enabled";
  return recursiveReadOnly === "IfPossible" && canRecurse ? "Enabled" : "Disabled";
}

/** RFC 3339 in whole seconds, as Kubernetes writes times; the epoch if unknown. */
export function time(wall: number): string {
  return `${new Date(Math.floor(Math.max(0, wall) / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}
