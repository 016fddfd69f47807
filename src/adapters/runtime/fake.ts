import type { Abortable } from "../../lib/abort.ts";
import { AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { EventQueue } from "./event-queue.ts";
import { FakeControl } from "./fake-control.ts";
import { type FakeImage, FakeImages } from "./fake-images.ts";
import type { FakeProgram } from "./fake-program.ts";
import { FakeWorld, failure, hasLabels, KILLED, toSummary } from "./fake-world.ts";
import {
  type CheckpointRequest,
  type ContainerConfig,
  type ContainerStatus,
  type ContainerSummary,
  type CreateContainerRequest,
  type ExecCommand,
  type ExecResult,
  type ExecStreams,
  type ImageFilesystems,
  type ImagePort,
  type ImagePull,
  type LinuxResources,
  type ListFilter,
  type PullProgress,
  type RunningPull,
  type RuntimeEvent,
  type RuntimeImage,
  type RuntimePort,
  type RuntimeStatus,
  type RuntimeVersion,
  type SandboxConfig,
  type SandboxStatus,
  type SandboxSummary,
  type WritableLayer,
} from "./port.ts";

/**
 * A runtime in memory that behaves like containerd, on the injected clock. Script it with `control` (delays, faults,
 * call log), `image`, `program`, `exit` and `goAway`; ids are readable (`sandbox-1`, `container-2`).
 */
export class FakeRuntime implements RuntimePort, ImagePort {
  readonly control: FakeControl;
  readonly images: FakeImages;
  private readonly world: FakeWorld;

  /** Whether pods may have a user namespace of their own. */
  hasUserNamespaces = false;
  /** Why the network of pods is not ready; empty if it is. */
  networkProblem = "";
  /** Bytes that containers wrote, by id; one that is not here wrote nothing but its directory. */
  readonly written = new Map<string, number>();
  /** Changed after the container was made. */
  private readonly limits = new Map<string, LinuxResources>();

  constructor(
    private readonly deps: { clock: Clock },
    options: { program?: (config: ContainerConfig) => FakeProgram } = {},
  ) {
    this.control = new FakeControl(deps);
    this.images = new FakeImages({ clock: deps.clock, control: this.control });
    this.world = new FakeWorld({ clock: deps.clock, control: this.control, images: this.images }, options);
  }

  /** Makes an image known; one that was never named exists nowhere. */
  image(name: string, image: FakeImage = { state: "present" }): void {
    this.images.set(name, image);
  }

  /** What containers of this name do from now on. */
  program(containerName: string, program: FakeProgram | ((config: ContainerConfig) => FakeProgram)): void {
    this.world.programs.set(containerName, program);
  }

  /** The container's process ends now. */
  exit(id: string, exitCode: number, reason?: string): void {
    this.world.exit(id, exitCode, reason);
  }

  /** The sandbox's own process dies; its containers go on. */
  killSandbox(id: string): void {
    this.world.endSandbox(this.world.sandbox(id));
  }

  /** The kernel kills the container for its memory. */
  outOfMemory(id: string): void {
    this.world.emit("oom", id);
    this.world.exit(id, KILLED, "OOMKilled");
  }

  /** All calls fail with Unavailable and events stop until `comeBack`; containers go on meanwhile, or are lost. */
  goAway(containers: "go on" | "lost" = "go on"): void {
    this.control.isAway = true;
    if (containers === "lost") this.world.loseEverything();
  }

  /** The runtime is there again; readers of events get a resync, and none of what happened meanwhile. */
  comeBack(): void {
    this.control.isAway = false;
    for (const reader of this.world.readers) reader.push({ kind: "resync" });
  }

  /** What there is, for the eyes of a test: no call, so neither counted nor failed. */
  peek(): { sandboxes: readonly SandboxSummary[]; containers: readonly ContainerStatus[] } {
    return {
      sandboxes: [...this.world.sandboxes.values()].map(({ summary }) => summary),
      containers: [...this.world.containers.values()].map(({ status }) => status),
    };
  }

  /** What a container was made from. */
  configOf(id: string): ContainerConfig | undefined {
    return this.world.containers.get(id)?.config;
  }

  /** What a sandbox was made from. */
  sandboxConfigOf(id: string): SandboxConfig | undefined {
    return this.world.sandboxes.get(id)?.config;
  }

  /** The limits that a container has now, or that a sandbox was told of last. */
  limitsOf(id: string): LinuxResources | undefined {
    return this.limits.get(id) ?? this.configOf(id)?.linux.resources;
  }

  get eventSource(): RuntimePort["eventSource"] {
    return this.control.isAway || this.world.readers.size === 0 ? "none" : "cri";
  }

  async *events({ signal }: Abortable): AsyncGenerator<RuntimeEvent, void, undefined> {
    const queue = new EventQueue();
    this.world.readers.add(queue);
    if (!this.control.isAway) queue.push({ kind: "resync" });
    const scope = new AbortScope([signal]);
    try {
      yield* queue.read(scope.signal);
    } finally {
      scope.dispose();
      this.world.readers.delete(queue);
    }
  }

  version({ signal }: Abortable): Promise<RuntimeVersion> {
    return this.control.around(["version", ""], signal, () => ({ name: "fake", version: "1.0.0", apiVersion: "v1" }));
  }

  status({ signal }: Abortable): Promise<RuntimeStatus> {
    const handlers = [{ name: "", recursiveReadOnlyMounts: true, userNamespaces: this.hasUserNamespaces }];
    const { networkProblem } = this;
    const network = { networkReady: networkProblem === "", message: networkProblem };
    const status = { ready: true, ...network, handlers, supplementalGroupsPolicy: true };
    return this.control.around(["status", ""], signal, () => status);
  }

  sandboxImage({ signal }: Abortable): Promise<string | undefined> {
    return this.control.around(["sandboxImage", ""], signal, () => undefined);
  }

  cgroupDriver({ signal }: Abortable): Promise<"cgroupfs" | "systemd" | undefined> {
    return this.control.around(["cgroupDriver", ""], signal, () => "cgroupfs");
  }

  runSandbox(config: SandboxConfig, _handler: string, { signal }: Abortable): Promise<string> {
    return this.control.around(["runSandbox", config.metadata.name], signal, () => this.world.addSandbox(config));
  }

  stopSandbox(id: string, { signal }: Abortable): Promise<void> {
    return this.control.around(["stopSandbox", id], signal, () => {
      const sandbox = this.world.sandboxes.get(id);
      if (sandbox === undefined) return;
      for (const container of this.world.containersOf(id)) this.world.exit(container.id, KILLED);
      this.world.endSandbox(sandbox);
    });
  }

  removeSandbox(id: string, { signal }: Abortable): Promise<void> {
    return this.control.around(["removeSandbox", id], signal, () => {
      const sandbox = this.world.sandboxes.get(id);
      if (sandbox === undefined) return;
      for (const container of this.world.containersOf(id)) this.world.discard(container);
      this.world.endSandbox(sandbox);
      this.world.emit("deleted", id);
      this.world.sandboxes.delete(id);
      this.world.release(id);
    });
  }

  sandboxStatus(id: string, { signal }: Abortable): Promise<SandboxStatus> {
    return this.control.around(["sandboxStatus", id], signal, () => {
      const { summary, config, ips } = this.world.sandbox(id);
      return { ...summary, hostNetwork: config.linux.security.namespaces.network === "node", ips };
    });
  }

  listSandboxes(filter: ListFilter, { signal }: Abortable): Promise<readonly SandboxSummary[]> {
    const id = filter.id ?? filter.sandboxId;
    return this.control.around(["listSandboxes", id ?? ""], signal, () =>
      [...this.world.sandboxes.values()]
        .map(({ summary }) => summary)
        .filter((summary) => (id === undefined || summary.id === id) && hasLabels(summary, filter)),
    );
  }

  createContainer(request: CreateContainerRequest, { signal }: Abortable): Promise<string> {
    return this.control.around(["createContainer", request.config.name], signal, () =>
      this.world.addContainer(request),
    );
  }

  startContainer(id: string, { signal }: Abortable): Promise<void> {
    return this.control.around(["startContainer", id], signal, () => {
      const container = this.world.container(id);
      const { program, status } = container;
      if (status.state !== "created") throw failure("Unknown", `container "${id}" is in ${status.state} state`);
      if (this.world.sandbox(container.sandboxId).summary.state !== "ready") {
        throw failure("Unknown", `sandbox container "${container.sandboxId}" is not running`);
      }
      if (program.failsToStart !== undefined) {
        const message = `failed to create containerd task: ${program.failsToStart}`;
        this.world.end(container, { exitCode: 128, reason: "StartError", message });
        throw failure("Unknown", message);
      }
      container.status = { ...status, state: "running", startedAt: this.deps.clock.now().wall };
      this.world.emit("started", id);
      if (program.exitAfterMs === undefined) return;
      container.timer = this.deps.clock.after(program.exitAfterMs, () => this.world.exit(id, program.exitCode ?? 0));
    });
  }

  stopContainer(id: string, graceSeconds: number, { signal }: Abortable): Promise<void> {
    return this.control.around(["stopContainer", id], signal, async () => {
      const container = this.world.containers.get(id);
      if (container?.status.state !== "running") return;
      const { program } = container;
      const graceMs = graceSeconds * 1000;
      const answers = !program.ignoresTerm && (program.termMs ?? 0) < graceMs;
      const exitCode = answers ? (program.termCode ?? 128 + 15) : KILLED;
      const end = this.deps.clock.after(answers ? (program.termMs ?? 0) : graceMs, () => this.world.exit(id, exitCode));
      // Who gives up waiting takes back the kill, not the signal.
      await this.world.untilStopped(container, signal).finally(() => answers || end.cancel());
    });
  }

  removeContainer(id: string, { signal }: Abortable): Promise<void> {
    return this.control.around(["removeContainer", id], signal, () => {
      const container = this.world.containers.get(id);
      if (container !== undefined) this.world.discard(container);
    });
  }

  containerStatus(id: string, { signal }: Abortable): Promise<ContainerStatus> {
    return this.control.around(["containerStatus", id], signal, () => this.world.container(id).status);
  }

  listContainers(filter: ListFilter, { signal }: Abortable): Promise<readonly ContainerSummary[]> {
    return this.control.around(["listContainers", filter.id ?? filter.sandboxId ?? ""], signal, () =>
      [...this.world.containers.values()]
        .filter(({ id }) => filter.id === undefined || id === filter.id)
        .filter(({ sandboxId }) => filter.sandboxId === undefined || sandboxId === filter.sandboxId)
        .filter(({ status }) => hasLabels(status, filter))
        .map(({ sandboxId, status }) => toSummary(sandboxId, status)),
    );
  }

  writableLayers(filter: ListFilter, { signal }: Abortable): Promise<readonly WritableLayer[]> {
    return this.control.around(["writableLayers", filter.id ?? ""], signal, async () => {
      const found = await this.listContainers(filter, { signal });
      return found.map(({ id, name, labels }) => ({
        id,
        name,
        labels,
        bytes: this.written.get(id) ?? 4096,
        inodes: 1,
        at: this.deps.clock.now().wall,
      }));
    });
  }

  updateSandboxResources(id: string, limits: { resources: LinuxResources }, { signal }: Abortable): Promise<void> {
    return this.control.around(["updateSandboxResources", id], signal, () => {
      this.world.sandbox(id);
      this.limits.set(id, limits.resources);
    });
  }

  updateContainerResources(id: string, resources: LinuxResources, { signal }: Abortable): Promise<void> {
    return this.control.around(["updateContainerResources", id], signal, () => {
      this.world.container(id);
      this.limits.set(id, resources);
    });
  }

  setPodCidr(cidr: string, { signal }: Abortable): Promise<void> {
    return this.control.around(["setPodCidr", cidr], signal, () => undefined);
  }

  reopenContainerLog(id: string, { signal }: Abortable): Promise<void> {
    return this.control.around(["reopenContainerLog", id], signal, () => void this.world.running(id));
  }

  execSync(id: string, { command, timeoutSeconds }: ExecCommand, { signal }: Abortable): Promise<ExecResult> {
    return this.control.around(["execSync", id], signal, async () => {
      const result = this.world.running(id).program.exec?.(command) ?? {};
      const limitMs = timeoutSeconds > 0 ? timeoutSeconds * 1000 : Number.POSITIVE_INFINITY;
      const takesMs = result.takesMs ?? 0;
      if (takesMs > 0) await this.deps.clock.sleep(Math.min(takesMs, limitMs), { signal });
      if (takesMs > limitMs) {
        throw failure(
          "Timeout",
          `failed to exec in container: timeout ${timeoutSeconds}s exceeded: context deadline exceeded`,
        );
      }
      const { exitCode = 0, stdout = "", stderr = "" } = result;
      return { exitCode, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) };
    });
  }

  exec(id: string, _request: ExecStreams & { command: readonly string[] }, { signal }: Abortable): Promise<string> {
    return this.control.around(["exec", id], signal, () => `http://127.0.0.1:0/exec/${this.world.running(id).id}`);
  }

  attach(id: string, _request: ExecStreams, { signal }: Abortable): Promise<string> {
    return this.control.around(["attach", id], signal, () => `http://127.0.0.1:0/attach/${this.world.running(id).id}`);
  }

  portForward(sandboxId: string, _ports: readonly number[], { signal }: Abortable): Promise<string> {
    return this.control.around(["portForward", sandboxId], signal, () => {
      return `http://127.0.0.1:0/portforward/${this.world.sandbox(sandboxId).summary.id}`;
    });
  }

  checkpointContainer(id: string, _request: CheckpointRequest, { signal }: Abortable): Promise<void> {
    return this.control.around(["checkpointContainer", id], signal, () => {
      this.world.running(id);
      throw failure("Unimplemented", "checkpoint/restore is not there");
    });
  }

  listImages(options: Abortable): Promise<readonly RuntimeImage[]> {
    return this.images.listImages(options);
  }

  imageStatus(image: string, options: Abortable): Promise<RuntimeImage | undefined> {
    return this.images.imageStatus(image, options);
  }

  pullImage(image: string, request: ImagePull, options: Abortable): Promise<string> {
    return this.images.pullImage(image, request, options);
  }

  pullProgress(
    pulls: readonly RunningPull[],
    options: Abortable,
  ): Promise<ReadonlyMap<string, PullProgress> | undefined> {
    return this.images.pullProgress(pulls, options);
  }

  removeImage(image: string, options: Abortable): Promise<void> {
    return this.images.removeImage(image, options);
  }

  imageFilesystems(options: Abortable): Promise<ImageFilesystems> {
    return this.images.imageFilesystems(options);
  }
}
