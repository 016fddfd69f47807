import type {
  CreateContainerRequest,
  ExecCommand,
  ExecResult,
  LinuxResources,
  RuntimePort,
  RuntimeStatus,
  SandboxConfig,
  SandboxStatus,
} from "../../adapters/runtime/port.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { ObservationCache } from "./observation-cache.ts";

/** What the executors call of the runtime. */
export type ExecutorRuntime = Pick<
  RuntimePort,
  | "status"
  | "runSandbox"
  | "stopSandbox"
  | "removeSandbox"
  | "sandboxStatus"
  | "updateSandboxResources"
  | "createContainer"
  | "startContainer"
  | "stopContainer"
  | "removeContainer"
  | "updateContainerResources"
  | "execSync"
>;

/**
 * The runtime that the executors act through. Each call that creates, starts, stops or removes something is recorded in
 * the observation cache; one that fails or is aborted may have been carried out all the same, so it invalidates what is
 * known of its pod.
 */
export class RecordingRuntime implements ExecutorRuntime {
  constructor(private readonly deps: { readonly runtime: ExecutorRuntime; readonly cache: ObservationCache }) {}

  async runSandbox(config: SandboxConfig, handler: string, options: Abortable): Promise<string> {
    const { runtime, cache } = this.deps;
    const { uid } = config.metadata;
    const id = await orElse(runtime.runSandbox(config, handler, options), () => cache.invalidate(uid));
    cache.created(uid, id);
    return id;
  }

  async stopSandbox(id: string, options: Abortable): Promise<void> {
    const { runtime, cache } = this.deps;
    await orElse(runtime.stopSandbox(id, options), () => cache.invalidateOwner(id));
    // The end of a pod is judged by what the runtime lists then: a runtime may drop what it has stopped.
    cache.invalidateOwner(id);
  }

  async removeSandbox(id: string, options: Abortable): Promise<void> {
    const { runtime, cache } = this.deps;
    await orElse(runtime.removeSandbox(id, options), () => cache.invalidateOwner(id));
    cache.removed(id);
  }

  async createContainer(request: CreateContainerRequest, options: Abortable): Promise<string> {
    const { runtime, cache } = this.deps;
    const { uid } = request.sandbox.metadata;
    const id = await orElse(runtime.createContainer(request, options), () => cache.invalidate(uid));
    cache.created(uid, id, request.sandboxId);
    return id;
  }

  async startContainer(id: string, options: Abortable): Promise<void> {
    const { runtime, cache } = this.deps;
    await orElse(runtime.startContainer(id, options), () => cache.invalidateOwner(id));
    cache.started(id);
  }

  stopContainer(id: string, graceSeconds: number, options: Abortable): Promise<void> {
    const { runtime, cache } = this.deps;
    return orElse(runtime.stopContainer(id, graceSeconds, options), () => cache.invalidateOwner(id));
  }

  async removeContainer(id: string, options: Abortable): Promise<void> {
    const { runtime, cache } = this.deps;
    await orElse(runtime.removeContainer(id, options), () => cache.invalidateOwner(id));
    cache.removed(id);
  }

  status(options: Abortable): Promise<RuntimeStatus> {
    return this.deps.runtime.status(options);
  }

  sandboxStatus(id: string, options: Abortable): Promise<SandboxStatus> {
    return this.deps.runtime.sandboxStatus(id, options);
  }

  updateSandboxResources(
    id: string,
    limits: { readonly resources: LinuxResources; readonly overhead?: LinuxResources },
    options: Abortable,
  ): Promise<void> {
    return this.deps.runtime.updateSandboxResources(id, limits, options);
  }

  updateContainerResources(id: string, resources: LinuxResources, options: Abortable): Promise<void> {
    return this.deps.runtime.updateContainerResources(id, resources, options);
  }

  execSync(id: string, command: ExecCommand, options: Abortable): Promise<ExecResult> {
    return this.deps.runtime.execSync(id, command, options);
  }
}

async function orElse<T>(call: Promise<T>, onFailure: () => void): Promise<T> {
  try {
    return await call;
  } catch (error) {
    onFailure();
    throw error;
  }
}
