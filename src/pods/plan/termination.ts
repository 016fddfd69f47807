import type { Pod } from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import { isSidecar } from "../../model/pod-facts.ts";
import { graceFor } from "./grace.ts";

/** One thing to do to end a pod. */
export type TerminationAction =
  /** All preStop hooks begin at once; the signal of a stage waits for the stages before it. */
  | ({ readonly do: "killContainers" } & KillOrder)
  | { readonly do: "stopSandboxes"; readonly sandboxIds: readonly string[] }
  | { readonly do: "unprepareClaims" }
  | { readonly do: "tearDownVolumes" }
  | { readonly do: "removeCgroup" }
  /** Everything that the runtime has of the pod: containers, then sandboxes. */
  | {
      readonly do: "removeInstances";
      readonly containers: readonly ObservedContainer[];
      readonly sandboxIds: readonly string[];
    }
  | { readonly do: "removeLogs" }
  /** The pod's directory: as long as it exists, the next agent knows that something may be left of the pod. */
  | { readonly do: "removeDirectory" }
  | { readonly do: "releaseUserNamespace" }
  /** Sequences that run side by side, each to its end, before the next action. */
  | { readonly do: "together"; readonly sequences: readonly (readonly TerminationAction[])[] };

/** In which order containers are killed. */
export interface KillOrder {
  readonly stages: readonly (readonly ContainerKill[])[];
  /** Killed at once, and no stage waits for them. */
  readonly beside: readonly ContainerKill[];
}

/** A container to kill, and its grace period in seconds. */
export interface ContainerKill {
  readonly container: ObservedContainer;
  readonly graceSeconds: number;
}

/**
 * The stages of a pod's end. The runtime is read after `kill`, and nothing follows while a container still runs. The
 * phase becomes terminal after `release`: others may have the devices then.
 *
 *   kill ──► release ──► cleanUp ──► (the source no longer has the pod) ──► remove
 */
export type TerminationStage = "kill" | "release" | "cleanUp" | "remove";

/** What the end of a pod is planned from, besides the pod. */
export interface TerminationFacts {
  readonly observed: ObservedPod;
  /** Upper limit of every grace period. */
  readonly graceSeconds: number;
  /** False if `remove` follows at once, which cleans up as well. */
  readonly isWanted: boolean;
  readonly keepLogs: boolean;
}

/** Plans one stage of a pod's end. Pure; a stage that failed is planned again from what is left. */
export function planTermination(
  stage: TerminationStage,
  pod: Pod,
  facts: TerminationFacts,
): readonly TerminationAction[] {
  switch (stage) {
    case "kill":
      return planKill(pod, facts);
    case "release":
      return [{ do: "unprepareClaims" }];
    case "cleanUp":
      return facts.isWanted ? [{ do: "tearDownVolumes" }, { do: "removeCgroup" }] : [];
    case "remove":
      return planRemoval(facts);
  }
}

/** Kills all that runs and stops every sandbox, also those that are not ready: their network may be left. */
export function planKill(
  pod: Pod,
  { observed, graceSeconds }: Pick<TerminationFacts, "observed" | "graceSeconds">,
): readonly TerminationAction[] {
  const kill = (container: ObservedContainer): ContainerKill => {
    const own = graceFor(pod, { container });
    return { container, graceSeconds: Math.max(1, Math.min(graceSeconds, own)) };
  };
  const order = killOrder(pod, observed);
  const stages = order.stages.map((stage) => stage.map(kill));
  const beside = order.beside.map(kill);
  const sandboxIds = observed.sandboxes.map(({ id }) => id);
  return [
    ...(stages.length + beside.length === 0 ? [] : [{ do: "killContainers", stages, beside } as const]),
    ...(sandboxIds.length === 0 ? [] : [{ do: "stopSandboxes", sandboxIds } as const]),
  ];
}

function planRemoval({ observed, keepLogs }: TerminationFacts): readonly TerminationAction[] {
  const sandboxIds = observed.sandboxes.map(({ id }) => id);
  const instances: TerminationAction = { do: "removeInstances", containers: observed.containers, sandboxIds };
  return [
    { do: "together", sequences: [[instances], [{ do: "tearDownVolumes" }, { do: "removeCgroup" }]] },
    ...(keepLogs ? [] : [{ do: "removeLogs" } as const]),
    { do: "removeDirectory" },
    { do: "releaseUserNamespace" },
  ];
}

/**
 * Stages of running containers: first the regular ones, then the sidecars one by one from last to first. No sidecar
 * waits for ephemeral and init containers, nor for a container that is not known to run.
 */
function killOrder(
  pod: Pod,
  { containers }: ObservedPod,
): {
  readonly stages: readonly (readonly ObservedContainer[])[];
  readonly beside: readonly ObservedContainer[];
} {
  const alive = containers.filter(({ state }) => state !== "exited");
  const running = alive.filter(({ state }) => state === "running");
  const regular = pod.spec.containers.map(({ name }) => name);
  const sidecars = (pod.spec.initContainers ?? []).filter(isSidecar).map(({ name }) => name);
  const named = (names: readonly string[]) => running.filter(({ name }) => names.includes(name));
  const stages = [named(regular), ...sidecars.toReversed().map((name) => named([name]))];
  const staged = new Set(stages.flat());
  return {
    stages: stages.filter((stage) => stage.length > 0),
    beside: alive.filter((container) => !staged.has(container)),
  };
}
