import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Live } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { type CallOptions, type ChannelOptions, type EndedCall, GrpcChannel } from "../grpc/channel.ts";
import {
  type CheckpointRequest,
  type ContainerStatus,
  type ContainerSummary,
  type CreateContainerRequest,
  type ExecCommand,
  type ExecResult,
  type ExecStreams,
  type LinuxResources,
  type ListFilter,
  RuntimeError,
  type RuntimeEvent,
  type RuntimePort,
  type RuntimeStatus,
  type RuntimeVersion,
  type SandboxConfig,
  type SandboxStatus,
  type SandboxSummary,
  type WritableLayer,
} from "../runtime/port.ts";
import type { CallsInFlight } from "./calls-in-flight.ts";
import { RuntimeEvents } from "./events.ts";
import {
  fromContainer,
  fromContainerStats,
  fromContainerStatus,
  fromSandbox,
  fromSandboxStatus,
  fromStatus,
  sandboxImageOf,
} from "./from-wire.ts";
import { CgroupDriver } from "./generated/cri.ts";
import type { EventsListener } from "./listeners.ts";
import { runtimeService as rpc } from "./methods.ts";
import { CriStats } from "./runtime-stats.ts";
import { TaskStates } from "./task-states.ts";
import { toContainerConfig, toResources, toSandboxConfig } from "./to-wire.ts";

/**
 * How long after its limit a command's answer is waited for. containerd kills the command at the limit, but while a
 * child of it holds the output open it answers only at the deadline of the call.
 */
const EXEC_SLACK_MS = 5000;

export interface CriDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Called after each call. */
  readonly onCall?: (call: EndedCall) => void;
  readonly calls?: CallsInFlight;
  /** Begins a span of a call. */
  readonly traced?: ChannelOptions["traced"];
  /** Called when the connection of events changes. */
  readonly onEvents?: EventsListener;
}

/** How often the stop or removal of something that exits at the same time is tried, and the pause between. */
const STOP_ATTEMPTS = 5;
const REMOVE_ATTEMPTS = 100;
const AGAIN_MS = 50;

export interface CriOptions {
  /** `unix:///path` or a bare path. */
  readonly endpoint: string;
  /** The agent's runtimeRequestTimeout. */
  readonly requestTimeoutMs: Live<number>;
  /** containerd's namespace of CRI containers. */
  readonly namespace?: "k8s.io";
}

/** The runtime behind a CRI v1 socket. Made without a connection; the first call opens it. */
export class CriRuntime implements RuntimePort {
  private readonly channel: GrpcChannel;
  private readonly feed: RuntimeEvents;
  private readonly tasks = new TaskStates();
  readonly stats: CriStats;

  constructor(
    private readonly deps: CriDeps,
    private readonly options: CriOptions,
  ) {
    this.channel = new GrpcChannel(options.endpoint, deps.onCall, { calls: deps.calls, traced: deps.traced });
    this.stats = new CriStats(this.channel, (signal) => this.limit(signal));
    this.feed = new RuntimeEvents(
      { ...deps, channel: this.channel, tasks: this.tasks, runtime: this },
      { namespace: options.namespace ?? "k8s.io" },
    );
  }

  async version({ signal }: Abortable): Promise<RuntimeVersion> {
    const answer = await this.channel.unary(rpc.version, { version: "v1" }, this.limit(signal));
    return { name: answer.runtimeName, version: answer.runtimeVersion, apiVersion: answer.runtimeApiVersion };
  }

  async status({ signal }: Abortable): Promise<RuntimeStatus> {
    return fromStatus(await this.channel.unary(rpc.status, {}, this.limit(signal)));
  }

  killedForMemory(containerId: string): void {
    this.feed.killedForMemory(containerId);
  }

  async cgroupDriver({ signal }: Abortable): Promise<"cgroupfs" | "systemd" | undefined> {
    try {
      const { linux } = await this.channel.unary(rpc.runtimeConfig, {}, { ...this.limit(signal), optional: true });
      if (linux === undefined) return undefined;
      return linux.cgroupDriver === CgroupDriver.SYSTEMD ? "systemd" : "cgroupfs";
    } catch (error) {
      if (hasCode(error, "Unimplemented")) return undefined;
      throw error;
    }
  }

  async sandboxImage({ signal }: Abortable): Promise<string | undefined> {
    const { info } = await this.channel.unary(rpc.status, { verbose: true }, this.limit(signal));
    return sandboxImageOf(info["config"]);
  }

  async runSandbox(config: SandboxConfig, handler: string, { signal }: Abortable): Promise<string> {
    const request = { config: toSandboxConfig(config), runtimeHandler: handler };
    // Networking may be slow: twice the time, as in Kubernetes.
    const timeoutMs = 2 * this.options.requestTimeoutMs.current;
    const answer = await this.mutate(() => this.channel.unary(rpc.runPodSandbox, request, { signal, timeoutMs }));
    return answer.podSandboxId;
  }

  stopSandbox(id: string, { signal }: Abortable): Promise<void> {
    const stop = () => this.channel.unary(rpc.stopPodSandbox, { podSandboxId: id }, this.limit(signal));
    // containerd kills what it has not yet noticed to have exited, and fails on the shim that is gone.
    return this.again(stop, { attempts: STOP_ATTEMPTS, isPassing: isShimGone, signal });
  }

  removeSandbox(id: string, { signal }: Abortable): Promise<void> {
    return this.untilGone(() => this.channel.unary(rpc.removePodSandbox, { podSandboxId: id }, this.limit(signal)));
  }

  async sandboxStatus(id: string, { signal }: Abortable): Promise<SandboxStatus> {
    const { status } = await this.channel.unary(rpc.podSandboxStatus, { podSandboxId: id }, this.limit(signal));
    if (status === undefined) throw new RuntimeError("Unknown", `sandbox ${id}: the runtime gave no status`);
    return this.tasks.sandbox(fromSandboxStatus(status));
  }

  async listSandboxes(filter: ListFilter, { signal }: Abortable): Promise<readonly SandboxSummary[]> {
    const wire = { id: filter.id ?? filter.sandboxId ?? "", labelSelector: { ...filter.labels } };
    const { items } = await this.channel.unary(rpc.listPodSandbox, { filter: wire }, this.limit(signal));
    return items.map((item) => this.tasks.sandbox(fromSandbox(item)));
  }

  async updateSandboxResources(
    id: string,
    { resources, overhead }: { resources: LinuxResources; overhead?: LinuxResources },
    { signal }: Abortable,
  ): Promise<void> {
    const request = {
      podSandboxId: id,
      resources: toResources(resources),
      ...(overhead && { overhead: toResources(overhead) }),
    };
    try {
      await this.channel.unary(rpc.updatePodSandboxResources, request, { ...this.limit(signal), optional: true });
    } catch (error) {
      if (!hasCode(error, "Unimplemented")) throw error;
    }
  }

  async createContainer(request: CreateContainerRequest, { signal }: Abortable): Promise<string> {
    const wire = {
      podSandboxId: request.sandboxId,
      config: toContainerConfig(request.config),
      sandboxConfig: toSandboxConfig(request.sandbox),
    };
    const answer = await this.mutate(() => this.channel.unary(rpc.createContainer, wire, this.limit(signal)));
    return answer.containerId;
  }

  startContainer(id: string, { signal }: Abortable): Promise<void> {
    const call = (): Promise<unknown> =>
      this.channel.unary(rpc.startContainer, { containerId: id }, this.limit(signal));
    return this.tasks.followStart(id, this.mutate(call));
  }

  stopContainer(id: string, graceSeconds: number, { signal }: Abortable): Promise<void> {
    const seconds = Math.max(0, Math.ceil(graceSeconds));
    const request = { containerId: id, timeout: BigInt(seconds) };
    const stop = () => this.channel.unary(rpc.stopContainer, request, this.limit(signal, seconds));
    return this.again(stop, { attempts: STOP_ATTEMPTS, isPassing: isShimGone, signal });
  }

  removeContainer(id: string, { signal }: Abortable): Promise<void> {
    const remove = () => this.channel.unary(rpc.removeContainer, { containerId: id }, this.limit(signal));
    // containerd reports an exit before it has recorded it, and finds nothing to stop meanwhile.
    const isPassing = (error: unknown): boolean => isSaidToRun(error) || isShimGone(error);
    return this.again(remove, { attempts: REMOVE_ATTEMPTS, isPassing, signal });
  }

  async containerStatus(id: string, { signal }: Abortable): Promise<ContainerStatus> {
    const { status } = await this.channel.unary(rpc.containerStatus, { containerId: id }, this.limit(signal));
    if (status === undefined) throw new RuntimeError("Unknown", `container ${id}: the runtime gave no status`);
    return this.tasks.status(fromContainerStatus(status));
  }

  async listContainers(filter: ListFilter, { signal }: Abortable): Promise<readonly ContainerSummary[]> {
    const { id = "", sandboxId: podSandboxId = "", labels } = filter;
    const wire = { id, podSandboxId, labelSelector: { ...labels } };
    const { containers } = await this.channel.unary(rpc.listContainers, { filter: wire }, this.limit(signal));
    return containers.map((container) => this.tasks.summary(fromContainer(container)));
  }

  async writableLayers(filter: ListFilter, { signal }: Abortable): Promise<readonly WritableLayer[]> {
    const { id = "", sandboxId: podSandboxId = "", labels } = filter;
    const wire = { id, podSandboxId, labelSelector: { ...labels } };
    const { stats } = await this.channel.unary(rpc.listContainerStats, { filter: wire }, this.limit(signal));
    return stats.flatMap((one) => fromContainerStats(one) ?? []);
  }

  async updateContainerResources(id: string, resources: LinuxResources, { signal }: Abortable): Promise<void> {
    const request = { containerId: id, linux: toResources(resources) };
    await this.channel.unary(rpc.updateContainerResources, request, this.limit(signal));
  }

  async setPodCidr(cidr: string, { signal }: Abortable): Promise<void> {
    const request = { runtimeConfig: { networkConfig: { podCidr: cidr } } };
    await this.channel.unary(rpc.updateRuntimeConfig, request, this.limit(signal));
  }

  async reopenContainerLog(id: string, { signal }: Abortable): Promise<void> {
    await this.channel.unary(rpc.reopenContainerLog, { containerId: id }, this.limit(signal));
  }

  async execSync(id: string, { command, timeoutSeconds }: ExecCommand, { signal }: Abortable): Promise<ExecResult> {
    const seconds = Math.max(0, Math.ceil(timeoutSeconds));
    const request = { containerId: id, cmd: [...command], timeout: BigInt(seconds) };
    const slackMs = Math.min(this.options.requestTimeoutMs.current, EXEC_SLACK_MS);
    const limit = seconds === 0 ? { signal } : { signal, timeoutMs: seconds * 1000 + slackMs };
    const { exitCode, stdout, stderr } = await this.channel.unary(rpc.execSync, request, limit);
    return { exitCode, stdout, stderr };
  }

  async exec(
    id: string,
    request: ExecStreams & { command: readonly string[] },
    { signal }: Abortable,
  ): Promise<string> {
    const { command, ...streams } = request;
    const wire = { containerId: id, cmd: [...command], ...streams };
    return (await this.channel.unary(rpc.exec, wire, this.limit(signal))).url;
  }

  async attach(id: string, request: ExecStreams, { signal }: Abortable): Promise<string> {
    return (await this.channel.unary(rpc.attach, { containerId: id, ...request }, this.limit(signal))).url;
  }

  async portForward(sandboxId: string, ports: readonly number[], { signal }: Abortable): Promise<string> {
    const wire = { podSandboxId: sandboxId, port: [...ports] };
    return (await this.channel.unary(rpc.portForward, wire, this.limit(signal))).url;
  }

  async checkpointContainer(
    id: string,
    { location, timeoutSeconds }: CheckpointRequest,
    { signal }: Abortable,
  ): Promise<void> {
    const request = { containerId: id, location, timeout: BigInt(timeoutSeconds) };
    await this.channel.unary(rpc.checkpointContainer, request, this.limit(signal, timeoutSeconds));
  }

  events(options: Abortable): AsyncIterable<RuntimeEvent> {
    return this.feed.subscribe(options);
  }

  get eventSource(): RuntimePort["eventSource"] {
    return this.feed.source;
  }

  /** Closes the connection; for a process that goes on without this runtime, and for tests. */
  close(): void {
    this.channel.close();
  }

  private limit(signal: AbortSignal, extraSeconds = 0): CallOptions {
    return { signal, timeoutMs: this.options.requestTimeoutMs.current + extraSeconds * 1000 };
  }

  /** An own change: where events come from lists, the next list is due soon. */
  private async mutate<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } finally {
      this.feed.expectChange();
    }
  }

  /** `untilGone`, retried while the runtime has not noticed an exit yet. */
  private async again(
    call: () => Promise<unknown>,
    { attempts, isPassing, signal }: Abortable & { attempts: number; isPassing: (error: unknown) => boolean },
  ): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.untilGone(call);
      } catch (error) {
        if (!isPassing(error) || attempt === attempts) throw error;
        await this.deps.clock.sleep(AGAIN_MS, { signal });
      }
    }
  }

  /** Stops or removes; succeeds when it is gone already. */
  private async untilGone(call: () => Promise<unknown>): Promise<void> {
    try {
      await this.mutate(call);
    } catch (error) {
      if (!hasCode(error, "NotFound")) throw error;
    }
  }
}

function isShimGone(error: unknown): boolean {
  return error instanceof RuntimeError && error.message.includes("ttrpc: closed");
}

function isSaidToRun(error: unknown): boolean {
  return error instanceof RuntimeError && error.message.includes("container is still running");
}

function hasCode(error: unknown, code: RuntimeError["code"]): boolean {
  return error instanceof RuntimeError && error.code === code;
}
