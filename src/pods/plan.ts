import type { Instant } from "../lib/clock.ts";
import { containerHash } from "../model/container-hash.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { ObservedContainer, ObservedPod, ObservedSandbox } from "../model/observed.ts";
import { describePod } from "../model/pod-facts.ts";
import { type CrashState, crashWait } from "./crash-backoff.ts";

/** One thing to do to the runtime. `execute/` has one file for each. */
export type PodAction =
  | { readonly do: "stopPod"; readonly why: string }
  | { readonly do: "createSandbox"; readonly attempt: number }
  | {
      readonly do: "killContainer";
      readonly container: ObservedContainer;
      readonly why: string;
      readonly replace?: boolean;
    }
  | { readonly do: "startContainer"; readonly start: ContainerStart }
  | { readonly do: "removeContainer"; readonly container: ObservedContainer }
  | { readonly do: "removeSandbox"; readonly sandboxId: string };

/** Which container to start, and in place of what. */
export interface ContainerStart {
  readonly name: string;
  readonly kind: "init" | "regular";
  /** The restart count; undefined when the runtime knows of no earlier one and the log files have to tell. */
  readonly attempt: number | undefined;
  /** A container that was created but never started (the agent died in between): removed first, its attempt used again. */
  readonly replaces?: string;
  /** When the instance before it ended: what the crash back-off counts from. */
  readonly previousEnd?: number;
}

/** A container that will be started, but not yet. */
export interface ContainerWait {
  readonly container: string;
  readonly afterMs: number;
  readonly reason: string;
  readonly message: string;
}

export type PodPlan =
  | { readonly kind: "converge"; readonly actions: readonly PodAction[]; readonly waits: readonly ContainerWait[] }
  /** Nothing runs and nothing will: stop what is left, the phase is final. */
  | { readonly kind: "finish"; readonly why: string };

/** A start that failed and is not to be tried again before `untilMono`, as long as the container is the same. */
export interface StartHold {
  readonly untilMono: number;
  readonly hash: string;
  readonly reason: string;
  readonly message: string;
}

/** What a worker remembers between two plans. */
export interface PlanMemory {
  readonly crashes: ReadonlyMap<string, CrashState>;
  readonly holds: ReadonlyMap<string, StartHold>;
  /** Containers that were killed to be started again at once: they start whatever the restart policy says. */
  readonly replacing: ReadonlySet<string>;
}

/** What the worker should do next for a pod that is wanted. Pure: same input, same plan. */
export function planPod(pod: Pod, seen: { observed: ObservedPod; memory: PlanMemory }, now: Instant): PodPlan {
  const planner = new Planner(pod, seen, now);
  return planner.plan();
}

/** Why the pod needs another sandbox, or undefined when the newest one serves (7.1 of the lifecycle reference). */
export function sandboxProblem(pod: Pod, observed: ObservedPod): string | undefined {
  const newest = observed.sandboxes[0];
  if (newest === undefined) return "no sandbox yet";
  if (observed.sandboxes.filter((sandbox) => sandbox.state === "ready").length > 1)
    return "more than one sandbox is ready";
  if (newest.state !== "ready") return "the sandbox is not ready";
  const hostNetwork = pod.spec.hostNetwork === true;
  if (newest.hostNetwork !== hostNetwork) return "the network namespace mode changed";
  if (!hostNetwork && newest.ips.length === 0) return "the sandbox has no IP";
  return undefined;
}

/** The newest instance of a container, whatever sandbox it was in. */
export function newestOf(observed: ObservedPod, name: string): ObservedContainer | undefined {
  return observed.containers.find((container) => container.name === name);
}

/** Whether an ended container is started again under the pod's policy (7.6). */
export function mayRestart(pod: Pod, ended: Pick<ObservedContainer, "exitCode">): boolean {
  switch (pod.spec.restartPolicy) {
    case "Never":
      return false;
    case "OnFailure":
      return ended.exitCode !== 0;
    default:
      return true;
  }
}

class Planner {
  private readonly waits: ContainerWait[] = [];
  private readonly observed: ObservedPod;
  private readonly memory: PlanMemory;

  constructor(
    private readonly pod: Pod,
    seen: { observed: ObservedPod; memory: PlanMemory },
    private readonly now: Instant,
  ) {
    this.observed = seen.observed;
    this.memory = seen.memory;
  }

  plan(): PodPlan {
    const problem = sandboxProblem(this.pod, this.observed);
    return problem === undefined ? this.planInSandbox() : this.planNewSandbox(problem);
  }

  private get regular(): readonly Container[] {
    return this.pod.spec.containers ?? [];
  }

  private get init(): readonly Container[] {
    return this.pod.spec.initContainers ?? [];
  }

  /** 7.2: with a new sandbox everything starts anew, except what must not run twice. */
  private planNewSandbox(problem: string): PodPlan {
    const newest = this.observed.sandboxes[0];
    const wasStarted = this.observed.containers.length > 0;
    if (newest !== undefined && this.pod.spec.restartPolicy === "Never" && wasStarted) {
      return { kind: "finish", why: `${problem}, and the restart policy is Never` };
    }
    const starts = this.regular.filter((container) => !this.hasSucceededForGood(container));
    if (starts.length === 0) return { kind: "finish", why: "every container has succeeded" };
    const actions: PodAction[] = [];
    if (this.observed.sandboxes.length > 0) actions.push({ do: "stopPod", why: problem });
    for (const container of this.observed.containers) {
      if (this.init.some((init) => init.name === container.name)) actions.push({ do: "removeContainer", container });
    }
    actions.push({ do: "createSandbox", attempt: nextAttempt(newest) });
    const first = this.init[0];
    if (first !== undefined) this.start(actions, first, "init");
    else for (const container of starts) this.start(actions, container, "regular");
    return this.converge(actions);
  }

  private hasSucceededForGood(container: Container): boolean {
    if (this.pod.spec.restartPolicy !== "OnFailure") return false;
    const newest = newestOf(this.observed, container.name);
    return newest?.state === "exited" && newest.exitCode === 0;
  }

  private planInSandbox(): PodPlan {
    const actions: PodAction[] = [];
    const init = this.planInit(actions);
    if (init === "failed") return { kind: "finish", why: "an init container failed and must not run again" };
    if (init === "wait") return this.converge(actions);
    let alive = 0;
    for (const container of this.regular) if (this.planRegular(actions, container)) alive++;
    if (alive === 0) return { kind: "finish", why: "every container has ended" };
    return this.converge(actions);
  }

  /** 7.4: the last init container that has a status decides. */
  private planInit(actions: PodAction[]): "done" | "wait" | "failed" {
    if (this.init.length === 0) return "done";
    const begun = this.regular.some((container) => {
      const state = newestOf(this.observed, container.name)?.state;
      return state === "created" || state === "running";
    });
    if (begun) return "done";
    for (let i = this.init.length - 1; i >= 0; i--) {
      const container = this.init[i];
      const newest = container && newestOf(this.observed, container.name);
      if (container === undefined || newest === undefined) continue;
      if (newest.state === "running") return "wait";
      if (newest.state === "exited" && newest.exitCode === 0 && newest.reason !== "OOMKilled") {
        const following = this.init[i + 1];
        if (following === undefined) return "done";
        this.start(actions, following, "init");
        return "wait";
      }
      if (newest.state !== "created" && !mayRestart(this.pod, { exitCode: newest.exitCode || 1 })) return "failed";
      if (newest.state === "unknown")
        actions.push({ do: "killContainer", container: newest, why: "its state is unknown" });
      this.start(actions, container, "init");
      return "wait";
    }
    const first = this.init[0];
    if (first !== undefined) this.start(actions, first, "init");
    return "wait";
  }

  /** 7.5: true when the container runs, will run, or waits for its turn. */
  private planRegular(actions: PodAction[], container: Container): boolean {
    const newest = newestOf(this.observed, container.name);
    if (newest?.state === "running") {
      if (newest.hash === containerHash(container)) return true;
      const why = `Container ${container.name} definition changed, will be restarted`;
      actions.push({ do: "killContainer", container: newest, why, replace: true });
      this.start(actions, container, "regular");
      return true;
    }
    const replacing = this.memory.replacing.has(container.name);
    if (newest?.state === "exited" && !replacing && !mayRestart(this.pod, newest)) return false;
    if (newest?.state === "unknown") {
      const why = `Container is in "unknown" state, try killing it before restart`;
      actions.push({ do: "killContainer", container: newest, why });
    }
    this.start(actions, container, "regular");
    return true;
  }

  /** Adds the start, or the wait that comes before it. */
  private start(actions: PodAction[], container: Container, kind: "init" | "regular"): void {
    const hold = this.memory.holds.get(container.name);
    if (hold !== undefined && hold.hash === containerHash(container) && hold.untilMono > this.now.mono) {
      const afterMs = hold.untilMono - this.now.mono;
      this.waits.push({ container: container.name, afterMs, reason: hold.reason, message: hold.message });
      return;
    }
    const newest = newestOf(this.observed, container.name);
    if (newest?.state === "exited" && newest.hash === containerHash(container)) {
      const crash = this.memory.crashes.get(container.name);
      const afterMs = crashWait(crash, newest.finishedAt, this.now.wall);
      if (crash !== undefined && afterMs > 0) {
        const message = `back-off ${goSeconds(crash.delayMs)} restarting failed container=${container.name} pod=${describePod(this.pod)}`;
        this.waits.push({ container: container.name, afterMs, reason: "CrashLoopBackOff", message });
        return;
      }
    }
    actions.push({ do: "startContainer", start: this.describeStart(container, kind, newest) });
  }

  private describeStart(container: Container, kind: "init" | "regular", newest?: ObservedContainer): ContainerStart {
    const start = { name: container.name, kind };
    if (newest === undefined) return { ...start, attempt: undefined };
    if (newest.state === "created") return { ...start, attempt: newest.attempt, replaces: newest.id };
    return { ...start, attempt: newest.attempt + 1, previousEnd: newest.finishedAt };
  }

  private converge(actions: PodAction[]): PodPlan {
    return { kind: "converge", actions: [...actions, ...this.prune()], waits: this.waits };
  }

  /** Keeps one ended instance of each container (for `logs --previous`) and the newest sandbox, as in Kubernetes. */
  private prune(): PodAction[] {
    const actions: PodAction[] = [];
    const kept = new Set<string>();
    const occupied = new Set<string>();
    for (const container of this.observed.containers) {
      const ended = container.state === "exited";
      const surplus = ended && kept.has(container.name);
      if (ended) kept.add(container.name);
      if (surplus) actions.push({ do: "removeContainer", container });
      else occupied.add(container.sandboxId);
    }
    for (const sandbox of this.observed.sandboxes.slice(1)) {
      if (sandbox.state === "ready" || occupied.has(sandbox.id)) continue;
      actions.push({ do: "removeSandbox", sandboxId: sandbox.id });
    }
    return actions;
  }
}

function nextAttempt(newest: ObservedSandbox | undefined): number {
  return newest === undefined ? 0 : newest.attempt + 1;
}

/** Whole seconds the way Go prints a duration: `10s`, `1m20s`, `5m0s`. */
function goSeconds(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
