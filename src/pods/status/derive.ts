import type { ContainerStatus, Pod, PodStatus } from "../../model/generated/types.ts";
import { allContainers, type ContainerKind, containersOf, isSidecar } from "../../model/pod-facts.ts";
import { orderPodIps } from "../../model/pod-ips.ts";
import { qosClass } from "../../model/qos.ts";
import { formatResources, podLimits, podRequests } from "../../model/resources.ts";
import { messageLimit, withinLimit } from "../observe/message-limit.ts";
import { sandboxProblem } from "../plan/sandbox.ts";
import { conditionsOf, generationOf } from "./derive-conditions.ts";
import { deriveContainerStatus, time } from "./derive-container.ts";
import { endedStatuses } from "./derive-end.ts";
import { isTerminalPhase, phaseOf } from "./derive-phase.ts";
import type { StatusFacts } from "./status-facts.ts";
import { withHealth } from "./with-health.ts";

export { isTerminalPhase } from "./derive-phase.ts";
export type { StatusFacts, StatusFailure } from "./status-facts.ts";

/** What an init container shows that the runtime no longer has, once a regular container was created. */
const TAKEN_AS_DONE = {
  reason: "Completed",
  exitCode: 0,
  message:
    "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally",
};

/** The status of a pod, from its spec, what was observed, and the status before. Pure. */
export function derivePodStatus(facts: StatusFacts): PodStatus {
  const { pod, observed, previous } = facts;
  const limit = messageLimit(allContainers(pod).length);
  const regular = statuses(facts, "regular").map((status) => withinLimit(status, limit));
  const init = statuses(facts, "init").map((status) => withinLimit(status, limit));
  const ephemeral = statuses(facts, "ephemeral").map((status) => withinLimit(status, limit));
  const phase = phaseOf(facts, init, regular);
  const shown = facts.finished
    ? endedStatuses(pod, { init, regular }, previousOf(previous, "init"))
    : { init, regular };
  const ips = podIps(facts);
  const why =
    facts.failure && isTerminalPhase(phase) ? pick(facts.failure) : previous?.phase === phase ? pick(previous) : {};
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
    ...(init.length === 0 ? {} : { initContainerStatuses: shown.init }),
    containerStatuses: [...shown.regular].sort(byName),
    ...(ephemeral.length === 0 ? {} : { ephemeralContainerStatuses: [...ephemeral].sort(byName) }),
  };
}

/** When the pod was started, also by an earlier agent: its deadline must not start over. */
function firstSeen({ observed, now }: StatusFacts): number {
  return Math.min(now, ...observed.sandboxes.map((sandbox) => sandbox.createdAt));
}

/** The allocated and actual resources of the whole pod, pod-level values and overhead included. */
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

/** The pod with its actual resources, where they are not the allocated ones yet. */
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
  const { pod, observed, previous } = facts;
  const before = previousOf(previous, kind);
  const isRegularCreated = observed.containers.some(
    ({ name, state }) => state !== "unknown" && pod.spec.containers.some((container) => container.name === name),
  );
  return containersOf(pod, kind).map((container) => {
    const last = before.find(({ name }) => name === container.name);
    const derived = deriveContainerStatus(container, {
      pod,
      observed,
      kind,
      runtimeName: facts.runtimeName,
      previous: last,
      waiting: facts.waiting.get(container.name),
      probes: facts.probes?.get(container.name),
      terminating: facts.terminating,
      hasRecursiveReadOnly: facts.hasRecursiveReadOnly === true,
      showsVolumeImages: facts.showsVolumeImages === true,
      restartingAll: facts.restartingAll === true,
      ...(facts.actualOf && { actualOf: facts.actualOf }),
    });
    const status = kind === "regular" ? withHealth(derived, facts.healthOf?.(container) ?? [], last) : derived;
    const isTakenAsDone =
      kind === "init" &&
      !isSidecar(container) &&
      isRegularCreated &&
      facts.restartingAll !== true &&
      status.containerID === undefined &&
      status.state?.waiting !== undefined;
    return isTakenAsDone ? { ...status, ready: true, state: { terminated: TAKEN_AS_DONE } } : status;
  });
}

function previousOf(previous: PodStatus | undefined, kind: ContainerKind): readonly ContainerStatus[] {
  if (kind === "regular") return previous?.containerStatuses ?? [];
  return (kind === "init" ? previous?.initContainerStatuses : previous?.ephemeralContainerStatuses) ?? [];
}

/** A pod in the host network has the host's IPs from its first status on. */
function podIps({ pod, observed, previous, hostIps }: StatusFacts): readonly string[] {
  if (pod.spec.hostNetwork === true) return hostIps;
  const newest = observed.sandboxes[0];
  if (newest !== undefined && newest.state === "ready" && newest.ips.length > 0)
    return orderPodIps(newest.ips, hostIps);
  return (previous?.podIPs ?? []).map(({ ip }) => ip ?? "").filter((ip) => ip !== "");
}
