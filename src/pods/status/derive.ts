import type { Container, ContainerStatus, Pod, PodStatus, ResourceRequirements } from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import { allContainers, type ContainerKind, containersOf, isSidecar } from "../../model/pod-facts.ts";
import type { PodProbeResults } from "../../model/probe.ts";
import { qosClass } from "../../model/qos.ts";
import { formatResources, podLimits, podRequests } from "../../model/resources.ts";
import { messageLimit, withinLimit } from "../observe/message-limit.ts";
import { sandboxProblem } from "../plan/plan.ts";
import { mayRestart } from "../plan/restart-rules.ts";
import { conditionsOf, generationOf, isSidecarOf } from "./derive-conditions.ts";
import { deriveContainerStatus, time, type WaitingReason } from "./derive-container.ts";

/** All that a pod's status is made from. */
export interface StatusFacts {
  readonly pod: Pod;
  readonly observed: ObservedPod;
  readonly previous: PodStatus | undefined;
  readonly waiting: ReadonlyMap<string, WaitingReason>;
  readonly probes?: PodProbeResults;
  readonly runtimeName: string;
  readonly hostIps: readonly string[];
  /** Wall-clock milliseconds. */
  readonly now: number;
  /** The pod is being stopped: nothing of it starts any more. */
  readonly terminating: boolean;
  /** Its containers have all stopped and it ended by itself or was ended: the phase may become final. */
  readonly finished: boolean;
  readonly hasRecursiveReadOnly?: boolean;
  /** What a container has of cpu and memory; absent or undefined means what it was given. */
  actualOf?(container: ObservedContainer): ResourceRequirements | undefined;
  /** What the pod as a whole has of them. */
  readonly actualPod?: ResourceRequirements | undefined;
  /** Why other requests and limits have to wait for room. */
  readonly resizePending?: { readonly reason: string; readonly message: string } | undefined;
  /** Containers do not have what they were given yet; `error` says what is in the way. */
  readonly resizing?: { readonly error?: string | undefined } | undefined;
  /** All containers are being removed to be started anew: their absence means nothing. */
  readonly restartingAll?: boolean;
  /** Forces the phase Failed, for example past its deadline or refused at admission. */
  readonly failure?: StatusFailure;
}

/** Why a pod is ended as Failed by the agent itself. */
export interface StatusFailure {
  readonly reason: string;
  readonly message: string;
  /** Said in the condition DisruptionTarget, for an end that is not the pod's fault. */
  readonly disruption?: string;
}

const TERMINAL = new Set(["Succeeded", "Failed"]);

/** True for a phase that never changes again. */
export function isTerminalPhase(phase: string | undefined): boolean {
  return phase !== undefined && TERMINAL.has(phase);
}

/** The status of a pod, from what is wanted, what was seen, and what was said before. Pure (section 11 of the reference). */
export function derivePodStatus(facts: StatusFacts): PodStatus {
  const { pod, observed, previous } = facts;
  const limit = messageLimit(allContainers(pod).length);
  const regular = statuses(facts, "regular").map((status) => withinLimit(status, limit));
  const init = statuses(facts, "init").map((status) => withinLimit(status, limit));
  const ephemeral = statuses(facts, "ephemeral").map((status) => withinLimit(status, limit));
  const phase = isTerminalPhase(previous?.phase) ? previous?.phase : phaseOf(facts, init, regular);
  const ips = podIps(facts);
  const why =
    phase === "Failed" && facts.failure ? pick(facts.failure) : previous?.phase === phase ? pick(previous) : {};
  return {
    phase,
    ...why,
    ...generationOf(facts),
    startTime: previous?.startTime ?? time(firstSeen(facts)),
    qosClass: previous?.qosClass ?? qosClass(pod),
    hostIP: facts.hostIps[0],
    hostIPs: facts.hostIps.map((ip) => ({ ip })),
    ...resourcesOf(facts),
    ...(ips.length === 0 ? {} : { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) }),
    conditions: conditionsOf(facts, {
      phase,
      init,
      regular,
      sandboxServes: sandboxProblem(pod, observed) === undefined,
    }),
    ...(init.length === 0 ? {} : { initContainerStatuses: init }),
    containerStatuses: [...regular].sort(byName),
    ...(ephemeral.length === 0 ? {} : { ephemeralContainerStatuses: [...ephemeral].sort(byName) }),
  };
}

/** A pod that an earlier run of the agent started goes on from then: its deadline must not begin anew. */
function firstSeen({ observed, now }: StatusFacts): number {
  return Math.min(now, ...observed.sandboxes.map((sandbox) => sandbox.createdAt));
}

/** What the pod was given as a whole, pod-level values and overhead included, and what it has of that. */
function resourcesOf(facts: StatusFacts): Pick<PodStatus, "allocatedResources" | "resources"> {
  const allocated = formatResources(podRequests(facts.pod));
  const actual = withActual(facts);
  const requests = formatResources(podRequests(actual));
  const limits = formatResources(podLimits(actual));
  return {
    ...(isEmpty(allocated) ? {} : { allocatedResources: allocated }),
    resources: { ...(isEmpty(requests) ? {} : { requests }), ...(isEmpty(limits) ? {} : { limits }) },
  };
}

/** The pod with what it has, where that is not yet what it was given. */
function withActual({ pod, observed, actualOf, actualPod, resizing }: StatusFacts): Pod {
  if (resizing === undefined) return pod;
  const containers = pod.spec.containers.map((container) => {
    const newest = observed.containers.find(({ name }) => name === container.name);
    const resources = newest?.state === "running" ? actualOf?.(newest) : undefined;
    return resources === undefined ? container : { ...container, resources };
  });
  return { ...pod, spec: { ...pod.spec, containers, ...(actualPod && { resources: actualPod }) } };
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0;
}

function byName(a: ContainerStatus, b: ContainerStatus): number {
  return a.name < b.name ? -1 : 1;
}

function pick(previous: Pick<PodStatus, "reason" | "message"> | undefined): { reason?: string; message?: string } {
  return {
    ...(previous?.reason === undefined ? {} : { reason: previous.reason }),
    ...(previous?.message === undefined ? {} : { message: previous.message }),
  };
}

function statuses(facts: StatusFacts, kind: ContainerKind): ContainerStatus[] {
  const { pod, previous } = facts;
  const containers = containersOf(pod, kind);
  const before = previousOf(previous, kind);
  const anyRegular = (pod.spec.containers ?? []).some((one) =>
    facts.observed.containers.some((c) => c.name === one.name),
  );
  return containers.map((container) => {
    const old = before.find((status) => status.name === container.name);
    const status = deriveContainerStatus(container, {
      ...{ pod, observed: facts.observed, previous: old, kind, runtimeName: facts.runtimeName },
      waiting: facts.waiting.get(container.name),
      probes: facts.probes?.get(container.name),
      terminating: facts.terminating,
      hasRecursiveReadOnly: facts.hasRecursiveReadOnly === true,
      restartingAll: facts.restartingAll === true,
      ...(facts.actualOf && { actualOf: facts.actualOf }),
    });
    const gone =
      facts.restartingAll !== true &&
      kind === "init" &&
      !isSidecar(container) &&
      anyRegular &&
      status.containerID === undefined;
    if (!gone) return facts.finished ? finished(status, old, anyRegular || kind === "init") : status;
    const message =
      "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally";
    return { ...status, ready: true, state: { terminated: { reason: "Completed", exitCode: 0, message } } };
  });
}

function previousOf(previous: PodStatus | undefined, kind: ContainerKind): readonly ContainerStatus[] {
  if (kind === "regular") return previous?.containerStatuses ?? [];
  return (kind === "init" ? previous?.initContainerStatuses : previous?.ephemeralContainerStatuses) ?? [];
}

/** 12.5: at the very end a container that was once there cannot be waiting or running. */
function finished(status: ContainerStatus, old: ContainerStatus | undefined, begun: boolean): ContainerStatus {
  if (status.state?.terminated !== undefined) return status;
  const wasThere =
    status.containerID !== undefined || old?.containerID !== undefined || status.lastState?.terminated !== undefined;
  if (!begun || !wasThere) return status;
  const message = "The container could not be located when the pod was terminated";
  const terminated = { reason: "ContainerStatusUnknown", exitCode: 137, message };
  const started = status.started === undefined ? {} : { started: false };
  return { ...status, ready: false, ...started, state: { terminated } };
}

function podIps({ pod, observed, previous, hostIps }: StatusFacts): readonly string[] {
  if (pod.spec.hostNetwork === true) return observed.sandboxes.length > 0 ? hostIps : [];
  const newest = observed.sandboxes[0];
  if (newest !== undefined && newest.state === "ready" && newest.ips.length > 0) return newest.ips;
  return (previous?.podIPs ?? []).map(({ ip }) => ip ?? "").filter((ip) => ip !== "");
}

/** 11.1 in its order of tests. */
function phaseOf(facts: StatusFacts, init: readonly ContainerStatus[], regular: readonly ContainerStatus[]): string {
  const { pod } = facts;
  if (facts.failure !== undefined) return isHeldBack(facts) ? (facts.previous?.phase ?? "Pending") : "Failed";
  if (facts.restartingAll === true && !facts.finished) return facts.previous?.phase ?? "Pending";
  const isBegun = regular.some((status) => status.containerID !== undefined);
  const plain = init.filter((status) => !isSidecarOf(pod, status.name));
  const sidecars = init.filter((status) => isSidecarOf(pod, status.name));
  for (const status of plain) {
    const exit = lastExit(status);
    if (exit !== undefined && exit.exitCode !== 0 && !mayRestart(pod, exit, specOf(pod, status.name))) return "Failed";
  }
  const isPending =
    plain.some((status) => status.state?.terminated === undefined) ||
    sidecars.some((status) => status.started !== true);
  if (isPending && !isBegun && !facts.finished) return "Pending";
  const stopped = regular.filter((status) => status.state?.running === undefined && lastExit(status) !== undefined);
  const running = regular.filter((status) => status.state?.running !== undefined).length;
  const isWaiting = running + stopped.length < regular.length || sidecars.some(isNew);
  if (isWaiting) return facts.finished ? "Failed" : "Pending";
  // A finished pod has no running sidecars any more; until then they keep it Running.
  if (running > 0 || sidecars.some((status) => status.state?.running !== undefined)) return "Running";
  if (stopped.length === 0) return "Pending";
  const goesOn = stopped.some((status) => {
    const exit = lastExit(status);
    return exit !== undefined && mayRestart(pod, exit, specOf(pod, status.name));
  });
  if (!facts.finished && goesOn) return "Running";
  return stopped.every((status) => lastExit(status)?.exitCode === 0) ? "Succeeded" : "Failed";
}

/** A final phase is said only when nothing of the pod runs any more: a controller may start the next one then. */
function isHeldBack({ observed, finished }: StatusFacts): boolean {
  return !finished && observed.containers.some(({ state }) => state === "running" || state === "unknown");
}

/** How the container ended, now or (while it waits to be started again) the last time. */
function lastExit(status: ContainerStatus): NonNullable<ContainerStatus["state"]>["terminated"] {
  return status.state?.terminated ?? (status.state?.waiting === undefined ? undefined : status.lastState?.terminated);
}

/** Waits for its very first start. */
function isNew(status: ContainerStatus): boolean {
  return status.state?.waiting !== undefined && status.lastState?.terminated === undefined;
}

function specOf(pod: Pod, name: string): Container | undefined {
  return [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find((container) => container.name === name);
}
