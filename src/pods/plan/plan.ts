import type { Instant } from "../../lib/clock.ts";
import { containerHash } from "../../model/container-hash.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod, ObservedSandbox } from "../../model/observed.ts";
import { type ContainerKind, describePod, isSidecar } from "../../model/pod-facts.ts";
import { NO_PROBE_RESULTS, type PodProbeResults } from "../../model/probe.ts";
import { changedOf, changedResources, needsRestart, POD_LEVEL } from "../admission/allocation.ts";
import { type CrashState, crashWait } from "./crash-backoff.ts";
import {
  type ContainerStart,
  type ContainerWait,
  type PlanFacts,
  type PlanMemory,
  type PodAction,
  type PodPlan,
  RESTART_ALL,
  resizeHold,
} from "./pod-plan.ts";
import { DEFAULT_DEAD_LIMITS, type Pruning, prunePod } from "./prune.ts";
import { mayRestart, restartTriggers } from "./restart-rules.ts";

/** What the worker should do next for a pod that is wanted. Pure: same input, same plan. */
export function planPod(pod: Pod, seen: PlanFacts, now: Instant): PodPlan {
  if (seen.refusal !== undefined) return { kind: "converge", actions: [], waits: [] };
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

class Planner {
  private readonly waits: ContainerWait[] = [];
  private readonly observed: ObservedPod;
  private readonly memory: PlanMemory;
  private readonly probes: PodProbeResults;

  constructor(
    private readonly pod: Pod,
    private readonly seen: PlanFacts,
    private readonly now: Instant,
  ) {
    this.observed = seen.observed;
    this.memory = seen.memory;
    this.probes = seen.probes ?? NO_PROBE_RESULTS;
  }

  plan(): PodPlan {
    const misplaced = this.seen.isMisplaced === true ? "its containers are not in the pod's cgroup" : undefined;
    const problem = sandboxProblem(this.pod, this.observed) ?? misplaced;
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
    if ((container.restartPolicy ?? this.pod.spec.restartPolicy) !== "OnFailure") return false;
    const newest = newestOf(this.observed, container.name);
    return newest?.state === "exited" && newest.exitCode === 0;
  }

  private planInSandbox(): PodPlan {
    const triggers = restartTriggers(this.pod, this.observed);
    if (triggers.length > 0) return this.planRestartAll(triggers);
    const actions: PodAction[] = [];
    this.planEphemeral(actions);
    const init = this.planInit(actions);
    if (init === "failed") return { kind: "finish", why: "an init container failed and must not run again" };
    if (init === "wait") return this.converge(actions);
    let alive = 0;
    for (const container of this.regular) if (this.planRegular(actions, container)) alive++;
    if (alive === 0) return { kind: "finish", why: "every container has ended" };
    this.planPodResize(actions);
    return this.converge(actions);
  }

  /** 7.8: once all containers have their part, the runtime is told of the whole. */
  private planPodResize(actions: PodAction[]): void {
    const { actualPod } = this.seen;
    const isOther = actualPod !== undefined && changedResources(actualPod, this.pod.spec.resources).length > 0;
    const hold = this.holdOf(POD_LEVEL);
    if (hold !== undefined) {
      if (isOther) this.waits.push({ container: POD_LEVEL, ...hold });
      return;
    }
    const sandbox = this.observed.sandboxes[0];
    const isResized = isOther || actions.some((action) => action.do === "resizeContainer");
    if (sandbox !== undefined && isResized) actions.push({ do: "resizePod", sandboxId: sandbox.id });
  }

  /**
   * 7.7: everything is stopped at once and removed (its logs stay, and tell the restart count), those that asked for
   * it last: should the agent die in between, the next one finds the reason again. A row of such restarts backs off.
   */
  private planRestartAll(triggers: readonly ObservedContainer[]): PodPlan {
    const ended = Math.max(...triggers.map(({ finishedAt }) => finishedAt));
    const crash = this.memory.crashes.get(RESTART_ALL);
    const afterMs = crashWait(crash, ended, this.now.wall);
    if (crash !== undefined && afterMs > 0) {
      const waits = triggers.map(({ name }) => this.crashLoop(name, { crash, afterMs }));
      return { kind: "converge", actions: [], waits };
    }
    const own = [...this.regular, ...this.init].map(({ name }) => name);
    const all = this.observed.containers.filter(({ name }) => own.includes(name));
    const others = all.filter((container) => !triggers.includes(container));
    const kills = others
      .filter(({ state }) => state !== "exited")
      .map((container) => {
        const why = `Stopping container ${container.name}, all containers will be restarted`;
        return { do: "killContainer", container, why, graceSeconds: 0 } as const;
      });
    const removals = [...others, ...triggers].map(
      (container) => ({ do: "removeContainer", container, keepLogs: true }) as const,
    );
    return { kind: "converge", actions: [{ do: "restartAll", triggers }, ...kills, ...removals], waits: [] };
  }

  private crashLoop(name: string, { crash, afterMs }: { crash: CrashState; afterMs: number }): ContainerWait {
    const message = `back-off ${goSeconds(crash.delayMs)} restarting failed container=${name} pod=${describePod(this.pod)}`;
    return { container: name, afterMs, reason: "CrashLoopBackOff", message };
  }

  /** 7.3: each is started once, whatever the others do, and never again. */
  private planEphemeral(actions: PodAction[]): void {
    for (const container of this.pod.spec.ephemeralContainers ?? []) {
      if (newestOf(this.observed, container.name) === undefined) this.start(actions, container, "ephemeral");
    }
  }

  /**
   * 7.4: the last init container that has a status decides how far the pod is; sidecars before it are kept running.
   * Once a regular container exists only the sidecars matter. Starts come out in ascending order.
   */
  private planInit(actions: PodAction[]): "done" | "wait" | "failed" {
    if (this.init.length === 0) return "done";
    const begun = this.regular.some((container) => {
      const state = newestOf(this.observed, container.name)?.state;
      return state === "created" || state === "running";
    });
    let verdict: "done" | "wait" | "failed" | undefined = begun ? "done" : undefined;
    const steps: PodAction[][] = [];
    for (const [i, container] of [...this.init.entries()].reverse()) {
      const step: PodAction[] = [];
      const newest = newestOf(this.observed, container.name);
      if (isSidecar(container)) {
        if (newest !== undefined || verdict !== undefined) this.keepSidecar(step, container, newest);
        if (newest !== undefined) verdict ??= this.afterSidecar(step, i, newest);
      } else if (newest !== undefined) verdict ??= this.afterInit(step, i, newest);
      steps.unshift(step);
    }
    actions.push(...steps.flat());
    if (verdict !== undefined) return verdict;
    const first = this.init[0];
    if (first !== undefined) this.start(actions, first, "init");
    return "wait";
  }

  /** What follows from the newest init container that must run to its end. */
  private afterInit(actions: PodAction[], i: number, newest: ObservedContainer): "done" | "wait" | "failed" {
    const container = this.init[i];
    if (container === undefined) return "wait";
    if (newest.state === "running") {
      this.planResize(actions, { container, running: newest, kind: "init" });
      return "wait";
    }
    const isOk = newest.state === "exited" && newest.exitCode === 0 && newest.reason !== "OOMKilled";
    if (isOk) return this.startNextInit(actions, i);
    const ended = { exitCode: newest.exitCode || 1 };
    if (newest.state !== "created" && !mayRestart(this.pod, ended, container)) return "failed";
    if (newest.state === "unknown") {
      actions.push({ do: "killContainer", container: newest, why: "its state is unknown" });
    }
    this.start(actions, container, "init");
    return "wait";
  }

  /** A sidecar that has started lets the next one begin; until then it holds everything up. */
  private afterSidecar(actions: PodAction[], i: number, newest: ObservedContainer): "done" | "wait" {
    const container = this.init[i];
    if (container === undefined || newest.state !== "running") return "wait";
    const results = this.probes.get(container.name);
    const isOwn = results?.containerId === newest.id;
    const started = container.startupProbe === undefined || (isOwn && results?.started === true);
    return started ? this.startNextInit(actions, i) : "wait";
  }

  private startNextInit(actions: PodAction[], i: number): "done" | "wait" {
    const following = this.init[i + 1];
    if (following === undefined) return "done";
    this.start(actions, following, "init");
    return "wait";
  }

  /** Starts a sidecar that does not run, and replaces one that changed or whose probes failed. */
  private keepSidecar(actions: PodAction[], container: Container, newest: ObservedContainer | undefined): void {
    if (newest?.state === "running") this.planRunning(actions, { container, running: newest, kind: "init" });
    else {
      if (newest?.state === "unknown") {
        actions.push({ do: "killContainer", container: newest, why: "its state is unknown" });
      }
      this.start(actions, container, "init");
    }
  }

  /** 7.5: true when the container runs, will run, or waits for its turn. */
  private planRegular(actions: PodAction[], container: Container): boolean {
    const newest = newestOf(this.observed, container.name);
    if (newest?.state === "running") return this.planRunning(actions, { container, running: newest, kind: "regular" });
    const replacing = this.memory.replacing.has(container.name);
    if (newest?.state === "exited" && !replacing && !mayRestart(this.pod, newest, container)) return false;
    if (newest?.state === "unknown") {
      const why = `Container is in "unknown" state, try killing it before restart`;
      actions.push({ do: "killContainer", container: newest, why });
    }
    this.start(actions, container, "regular");
    return true;
  }

  /** 7.5: a running container is replaced when its definition changed, and killed when a probe has failed. */
  private planRunning(actions: PodAction[], of: Running): boolean {
    const { container, running, kind } = of;
    if (running.hash === containerHash(container)) return this.planProbed(actions, of);
    const word = kind === "init" ? "Init container" : "Container";
    const why = `${word} ${container.name} definition changed, will be restarted`;
    actions.push({ do: "killContainer", container: running, why, replace: true });
    this.start(actions, container, kind);
    return true;
  }

  /** A container whose startup or liveness probe has failed is killed, and restarted unless the policy is Never. */
  private planProbed(actions: PodAction[], { container, running, kind }: Running): boolean {
    const failed = this.failedProbe(container, running);
    if (failed === undefined) return this.planResize(actions, { container, running, kind });
    const { why, graceSeconds } = failed;
    if ((container.restartPolicy ?? this.pod.spec.restartPolicy) === "Never") {
      actions.push({ do: "killContainer", container: running, why, graceSeconds });
      return false;
    }
    // The crash history before this instance decides: the first kill restarts at once, a row of them waits.
    const before = this.observed.containers.find(({ name, state }) => name === container.name && state === "exited");
    const crash = this.memory.crashes.get(container.name);
    const replace = before === undefined || crashWait(crash, before.finishedAt, this.now.wall) <= 0;
    actions.push({
      ...{ do: "killContainer", container: running, why: `${why}, will be restarted` },
      ...{ replace, graceSeconds },
    });
    if (!replace) return true;
    const start: ContainerStart = { name: container.name, kind, attempt: running.attempt + 1 };
    actions.push({ do: "startContainer", start: before ? { ...start, previousEnd: before.finishedAt } : start });
    return true;
  }

  /** 7.8: other limits in place, or by a restart where the container asks for that. */
  private planResize(actions: PodAction[], { container, running, kind }: Running): true {
    // A resize of the whole pod that failed is not begun again, with its containers, before its time.
    const pod = this.holdOf(POD_LEVEL) === undefined ? this.seen.actualPod : undefined;
    const before = { own: this.seen.actualOf?.(running), pod };
    const changed = changedOf(container, before, this.pod);
    if (changed.length === 0) return true;
    if (needsRestart(container, changed)) {
      const why = `Container ${container.name} resize requires restart, will be restarted`;
      actions.push({ do: "killContainer", container: running, why, replace: true });
      this.start(actions, container, kind);
      return true;
    }
    const hold = this.holdOf(container.name);
    if (hold !== undefined) this.waits.push({ container: container.name, ...hold });
    else actions.push({ do: "resizeContainer", running, spec: container });
    return true;
  }

  /** Why and how long a resize that failed is not tried again. */
  private holdOf(name: string): { afterMs: number; reason: string; message: string } | undefined {
    const hold = this.memory.holds.get(resizeHold(name));
    if (hold === undefined || hold.untilMono <= this.now.mono) return undefined;
    return { afterMs: hold.untilMono - this.now.mono, reason: hold.reason, message: hold.message };
  }

  private failedProbe(
    container: Container,
    running: ObservedContainer,
  ): { why: string; graceSeconds: number | undefined } | undefined {
    const results = this.probes.get(container.name);
    if (results?.containerId !== running.id) return undefined;
    for (const kind of ["liveness", "startup"] as const) {
      if (results[kind] !== "failure") continue;
      const probe = kind === "liveness" ? container.livenessProbe : container.startupProbe;
      const why = `Container ${container.name} failed ${kind} probe`;
      return {
        why,
        graceSeconds: this.pod.metadata.deletionGracePeriodSeconds ?? probe?.terminationGracePeriodSeconds,
      };
    }
    return undefined;
  }

  /** Adds the start, or the wait that comes before it. */
  private start(actions: PodAction[], container: Container, kind: ContainerKind): void {
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
        this.waits.push(this.crashLoop(container.name, { crash, afterMs }));
        return;
      }
    }
    actions.push({ do: "startContainer", start: this.describeStart(container, kind, newest) });
  }

  private describeStart(container: Container, kind: ContainerKind, newest?: ObservedContainer): ContainerStart {
    const start = { name: container.name, kind };
    if (newest === undefined) return { ...start, attempt: undefined };
    if (newest.state === "created") return { ...start, attempt: newest.attempt, replaces: newest.id };
    const previousEnd = newest.state === "exited" ? { previousEnd: newest.finishedAt } : {};
    return { ...start, attempt: newest.attempt + 1, ...previousEnd };
  }

  private converge(actions: PodAction[]): PodPlan {
    const { containers, sandboxIds, afterMs } = this.prune();
    const removals = [
      ...containers.map((container): PodAction => ({ do: "removeContainer", container })),
      ...sandboxIds.map((sandboxId): PodAction => ({ do: "removeSandbox", sandboxId })),
    ];
    const pruneAfterMs = afterMs === undefined ? {} : { pruneAfterMs: afterMs };
    return { kind: "converge", actions: [...actions, ...removals], waits: this.waits, ...pruneAfterMs };
  }

  /** What is left of earlier instances, as far as it is not to be kept. */
  private prune(): Pruning {
    return prunePod(this.observed, this.seen.dead ?? DEFAULT_DEAD_LIMITS, this.now);
  }
}

/** A container that runs, and in which list of the pod it stands. */
interface Running {
  readonly container: Container;
  readonly running: ObservedContainer;
  readonly kind: "init" | "regular";
}

function nextAttempt(newest: ObservedSandbox | undefined): number {
  return newest === undefined ? 0 : newest.attempt + 1;
}

/** Whole seconds the way Go prints a duration: `10s`, `1m20s`, `5m0s`. */
function goSeconds(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
