import { messageOf } from "../../lib/errors.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import { StartError } from "../../model/start-error.ts";
import type { PodIdentity } from "../../model/step.ts";
import { POD_LEVEL } from "../admission/allocation.ts";
import type { ExecuteDeps, PodRun } from "../execute/context.ts";
import { createSandbox } from "../execute/create-sandbox.ts";
import { EarlyPull } from "../execute/early-pull.ts";
import { killContainer } from "../execute/kill.ts";
import { NetworkNotReadyError, requireNetwork } from "../execute/network.ts";
import { removeContainer } from "../execute/remove.ts";
import { resizeContainer } from "../execute/resize-container.ts";
import { resizePod } from "../execute/resize-pod.ts";
import { containerOf, startContainer } from "../execute/start-container.ts";
import { graceFor } from "../plan/grace.ts";
import type { Acting } from "../plan/interrupt.ts";
import { type ContainerStart, type PodAction, resizeHold } from "../plan/pod-plan.ts";
import { planKill } from "../plan/termination.ts";
import { prepareClaims } from "./claim-preparation.ts";
import type { PodResize } from "./resize.ts";
import type { StartMemory } from "./start-memory.ts";
import { performTermination } from "./termination-actions.ts";
import { VolumePreparation } from "./volume-preparation.ts";

/** A resize that the runtime or the kernel rejected is tried again after this. */
const RESIZE_ERROR_MS = 10_000;

/** A start that takes no longer is reported with its result: one status less to write. A pull takes longer. */
const READY_REPORT_MS = 500;

interface ActionDeps {
  readonly execute: ExecuteDeps;
  readonly identity: PodIdentity;
  readonly memory: StartMemory;
  readonly resize: PodResize;
  /** Called when sandbox, network and volumes are ready and the containers are not started soon after. */
  readyToStart(): void;
}

/** Planned actions, and the observation that they were planned on. */
export interface Planned {
  readonly observed: ObservedPod;
  readonly actions: readonly PodAction[];
  /** Called before each action; throws if it became obsolete since it was planned. */
  begin(acting: Acting): void;
}

/** Performs the planned actions of one pod and remembers their outcome. */
export class PodActions {
  constructor(private readonly deps: ActionDeps) {}

  /** Performs actions one after the other, until one of them makes the rest obsolete. */
  async perform(run: PodRun, { observed, actions, begin }: Planned): Promise<void> {
    const { execute } = this.deps;
    const volumes = new VolumePreparation(execute.volumes, run);
    // A pod whose sandbox fails again and again pulls nothing, as in Kubernetes.
    const first = this.deps.memory.hasNoSandbox ? undefined : firstStarted(run, actions);
    const pull = new EarlyPull(execute, run, first);
    run.earlyPull = pull;
    let ready: { cancel(): void } | undefined;
    try {
      for (const action of actions) {
        run.interrupt.throwIfAborted();
        begin({ action, pod: run.pod });
        if (action.do === "createSandbox") {
          await Promise.all([volumes.beforeSandbox(), prepareClaims(execute, run)]);
        }
        if (action.do === "startContainer") {
          await volumes.beforeContainers();
          ready ??= execute.clock.after(READY_REPORT_MS, () => this.deps.readyToStart());
        }
        if (!(await this.act(run, observed, action))) return;
      }
    } finally {
      ready?.cancel();
      await Promise.all([volumes.end(), pull.end()]);
    }
  }

  /** Performs one action; false if the actions after it are obsolete. */
  private async act(run: PodRun, observed: ObservedPod, action: PodAction): Promise<boolean> {
    const { execute, identity, memory } = this.deps;
    const graceSeconds = graceFor(run.pod);
    switch (action.do) {
      case "stopPod":
        run.journal.event("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
        await this.stop(run, observed, graceSeconds);
        memory.isMisplaced = false;
        return true;
      case "createSandbox":
        await this.createSandbox(run, action.attempt);
        return true;
      case "killContainer":
        if (action.replace === true) memory.replacing.add(action.container.name);
        await killContainer(execute, run, { ...action, graceSeconds: action.graceSeconds ?? graceSeconds });
        return true;
      case "startContainer":
        return (await this.start(run, action.start)) || action.start.kind !== "init";
      case "restartAll":
        memory.beginRestartAll(run.pod, action.triggers);
        return true;
      case "removeContainer":
        await removeContainer(execute, { ...action, pod: identity }, { signal: run.finish });
        return true;
      case "resizeContainer":
        return this.resizeOne(run, action);
      case "resizePod":
        return this.resizeWhole(run, observed, action.sandboxId);
      case "removeSandbox":
        await execute.runtime.removeSandbox(action.sandboxId, { signal: run.finish });
        return true;
    }
  }

  /** Creates the sandbox. While the network is not ready this is the error, and nothing is created. */
  private async createSandbox(run: PodRun, attempt: number): Promise<void> {
    const { execute, memory } = this.deps;
    const options = { signal: run.interrupt };
    if (memory.isNetworkDown) await requireNetwork(execute.runtime, run, options);
    memory.isNetworkDown = false;
    try {
      await createSandbox(execute, run, attempt);
      memory.hasNoSandbox = false;
    } catch (error) {
      memory.hasNoSandbox = true;
      // Only asked after a failure: a start costs no call for it.
      await requireNetwork(execute.runtime, run, options).catch((why: unknown) => {
        if (!(why instanceof NetworkNotReadyError)) return;
        memory.isNetworkDown = true;
        throw why;
      });
      throw error;
    }
  }

  /** Stops everything of the pod, to be created again. */
  private stop(run: PodRun, observed: ObservedPod, graceSeconds: number): Promise<void> {
    const actions = planKill(run.pod, { observed, graceSeconds });
    return performTermination(this.deps.execute, run, { actions, begin: () => run.interrupt.throwIfAborted() });
  }

  private async start(run: PodRun, start: ContainerStart): Promise<boolean> {
    const { execute, memory } = this.deps;
    const crash = memory.crashAfter(run.pod, start);
    try {
      await startContainer(execute, run, { ...start, ...(crash && { crash }) });
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      memory.failed(run.pod, start.name, error);
      return false;
    } finally {
      // Also a start that failed counts as a restart, so that a command that does not exist backs off.
      if (crash !== undefined) memory.crashes.set(start.name, crash);
    }
    memory.started(start.name);
    return true;
  }

  /** Resizes a container; false if it failed: the others are tried again with it. */
  private async resizeOne(run: PodRun, { running, spec }: { running: ObservedContainer; spec: Container }) {
    const { execute, memory, resize } = this.deps;
    try {
      await resizeContainer(execute, run, { running, spec, begin: () => resize.begin(running.id) });
    } catch (error) {
      return this.holdResize(run.pod, spec.name, error);
    }
    memory.holds.delete(resizeHold(spec.name));
    resize.done(running.id, spec.resources ?? {});
    return true;
  }

  private async resizeWhole(run: PodRun, observed: ObservedPod, sandboxId: string): Promise<boolean> {
    const { execute, memory, resize } = this.deps;
    try {
      await resizePod(execute, run, { sandboxId, observed, begin: () => resize.begin(POD_LEVEL) });
    } catch (error) {
      return this.holdResize(run.pod, POD_LEVEL, error);
    }
    memory.holds.delete(resizeHold(POD_LEVEL));
    resize.done(POD_LEVEL, run.pod.spec.resources ?? {});
    return true;
  }

  private holdResize(pod: Pod, name: string, error: unknown): false {
    const { execute, memory, resize } = this.deps;
    const message = messageOf(error);
    resize.failed(pod, message);
    const untilMono = execute.clock.now().mono + RESIZE_ERROR_MS;
    memory.holds.set(resizeHold(name), { untilMono, hash: "", reason: "ResizeError", message });
    return false;
  }
}

/** The container that the actions start in a new sandbox before any other. */
function firstStarted(run: PodRun, actions: readonly PodAction[]): Container | undefined {
  const sandbox = actions.findIndex((action) => action.do === "createSandbox");
  if (sandbox === -1) return undefined;
  const first = actions.slice(sandbox).find((action) => action.do === "startContainer");
  return first?.do === "startContainer" ? containerOf(run, first.start) : undefined;
}
