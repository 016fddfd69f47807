import type { Clock } from "../../lib/clock.ts";
import { ownValue } from "../../lib/own-value.ts";
import type { EventQueue } from "./event-queue.ts";
import type { FakeControl } from "./fake-control.ts";
import type { FakeImages } from "./fake-images.ts";
import type { FakeContainer, FakeProgram, FakeSandbox } from "./fake-program.ts";
import {
  type ContainerConfig,
  type ContainerStatus,
  type ContainerSummary,
  type CreateContainerRequest,
  type ListFilter,
  RuntimeError,
  type RuntimeErrorCode,
  type RuntimeEvent,
  type SandboxConfig,
} from "./port.ts";

type EventType = Extract<RuntimeEvent, { kind: "container" }>["type"];

/** Exit code of a killed process. */
export const KILLED = 137;

interface Deps {
  readonly clock: Clock;
  readonly control: FakeControl;
  readonly images: FakeImages;
}

/** The sandboxes and containers of the fake runtime and what may happen to them, without calls around it. */
export class FakeWorld {
  readonly sandboxes = new Map<string, FakeSandbox>();
  readonly containers = new Map<string, FakeContainer>();
  readonly programs = new Map<string, FakeProgram | ((config: ContainerConfig) => FakeProgram)>();
  readonly readers = new Set<EventQueue>();
  /** Reserved names → ids, as containerd keeps them. */
  private readonly names = new Map<string, string>();
  private sequence = 0;

  constructor(
    private readonly deps: Deps,
    private readonly options: { program?: (config: ContainerConfig) => FakeProgram },
  ) {}

  addSandbox(config: SandboxConfig): string {
    const { metadata, labels, annotations } = config;
    const { name, namespace, uid, attempt } = metadata;
    const id = `sandbox-${++this.sequence}`;
    this.reserve(`sandbox ${[name, namespace, uid, attempt].join("_")}`, id);
    const hostNetwork = config.linux.security.namespaces.network === "node";
    const ips = hostNetwork ? [] : [`10.88.${this.sequence >> 8}.${this.sequence & 255}`];
    const createdAt = this.deps.clock.now().wall;
    this.sandboxes.set(id, { config, ips, summary: { id, metadata, state: "ready", createdAt, labels, annotations } });
    this.emit("created", id);
    this.emit("started", id);
    return id;
  }

  addContainer({ sandboxId, config }: CreateContainerRequest): string {
    const sandbox = this.sandbox(sandboxId);
    if (sandbox.summary.state !== "ready") {
      throw failure("NotFound", `failed to get sandbox container task: no running task found: ${sandboxId}: not found`);
    }
    const image = this.deps.images.find(config.image.ref);
    if (image === undefined) throw failure("NotFound", `failed to resolve image "${config.image.ref}": not found`);
    const id = `container-${++this.sequence}`;
    const { name, namespace, uid } = sandbox.config.metadata;
    this.reserve(`container ${[config.name, name, namespace, uid, config.attempt].join("_")}`, id);
    const status: ContainerStatus = {
      id,
      name: config.name,
      attempt: config.attempt,
      state: "created",
      createdAt: this.deps.clock.now().wall,
      startedAt: 0,
      finishedAt: 0,
      exitCode: 0,
      reason: "",
      message: "",
      image: image.tags[0] ?? config.image.ref,
      imageRef: image.id,
      labels: config.labels,
      annotations: config.annotations,
      logPath: `${sandbox.config.logDirectory}/${config.logPath}`,
      mounts: config.mounts.map(({ containerPath, hostPath }) => ({ containerPath, hostPath })),
    };
    this.containers.set(id, { id, sandboxId, config, program: this.programOf(config), status, onStop: new Set() });
    this.emit("created", id);
    return id;
  }

  sandbox(id: string): FakeSandbox {
    const sandbox = this.sandboxes.get(id);
    if (sandbox === undefined)
      throw failure("NotFound", `an error occurred when try to find sandbox "${id}": not found`);
    return sandbox;
  }

  container(id: string): FakeContainer {
    const found = this.containers.get(id);
    if (found === undefined)
      throw failure("NotFound", `an error occurred when try to find container "${id}": not found`);
    return found;
  }

  /** The container, which must run. */
  running(id: string): FakeContainer {
    const container = this.container(id);
    if (container.status.state !== "running") {
      throw failure("Unknown", `container is in CONTAINER_${container.status.state.toUpperCase()} state`);
    }
    return container;
  }

  containersOf(sandboxId: string): FakeContainer[] {
    return [...this.containers.values()].filter((container) => container.sandboxId === sandboxId);
  }

  /** The process of a running container ends; nothing happens to one that does not run. */
  exit(id: string, exitCode: number, reason = exitCode === 0 ? "Completed" : "Error"): void {
    const container = this.containers.get(id);
    if (container?.status.state === "running") this.end(container, { exitCode, reason });
  }

  /** The container is over, whether it ran or not. */
  end(container: FakeContainer, how: Pick<ContainerStatus, "exitCode" | "reason"> & { message?: string }): void {
    container.timer?.cancel();
    container.status = { ...container.status, ...how, state: "exited", finishedAt: this.deps.clock.now().wall };
    this.emit("stopped", container.id);
    for (const listener of [...container.onStop]) listener();
  }

  endSandbox(sandbox: FakeSandbox): void {
    if (sandbox.summary.state === "notReady") return;
    sandbox.summary = { ...sandbox.summary, state: "notReady" };
    this.emit("stopped", sandbox.summary.id);
  }

  /** A reboot: every process is gone. */
  loseEverything(): void {
    for (const { id } of this.containers.values()) this.exit(id, 255, "Unknown");
    for (const sandbox of this.sandboxes.values()) this.endSandbox(sandbox);
  }

  /** Removes a container; one that still runs is killed first, as containerd does. */
  discard(container: FakeContainer): void {
    this.exit(container.id, KILLED);
    this.emit("deleted", container.id);
    this.containers.delete(container.id);
    this.release(container.id);
  }

  /** Frees the name of what was removed. */
  release(id: string): void {
    for (const [name, holder] of this.names) if (holder === id) this.names.delete(name);
  }

  untilStopped(container: FakeContainer, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        container.onStop.delete(onStop);
        signal.removeEventListener("abort", onAbort);
      };
      const onStop = (): void => {
        leave();
        resolve();
      };
      const onAbort = (): void => {
        leave();
        reject(signal.reason as Error);
      };
      container.onStop.add(onStop);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Passes an event to every reader, unless the runtime is unavailable. */
  emit(type: EventType, id: string): void {
    if (this.deps.control.isAway) return;
    const sandbox = this.sandboxes.get(id) ?? this.sandboxes.get(this.containers.get(id)?.sandboxId ?? "");
    const podUid = sandbox?.config.metadata.uid;
    const at = this.deps.clock.now().wall;
    for (const reader of this.readers) reader.push({ kind: "container", type, id, ...(podUid && { podUid }), at });
  }

  private reserve(name: string, id: string): void {
    const holder = this.names.get(name);
    if (holder !== undefined) {
      const words = name.slice(name.indexOf(" ") + 1);
      throw failure("AlreadyExists", `failed to reserve name "${words}": name "${words}" is reserved for "${holder}"`);
    }
    this.names.set(name, id);
  }

  private programOf(config: ContainerConfig): FakeProgram {
    const scripted = this.programs.get(config.name) ?? this.options.program ?? {};
    return typeof scripted === "function" ? scripted(config) : scripted;
  }
}

/** A failure in the runtime's words. */
export function failure(code: RuntimeErrorCode, message: string): RuntimeError {
  return new RuntimeError(code, message);
}

/** True when all wanted labels are there with these values. */
export function hasLabels(item: { labels: Readonly<Record<string, string>> }, { labels = {} }: ListFilter): boolean {
  return Object.entries(labels).every(([key, value]) => ownValue(item.labels, key) === value);
}

/** What a list shows of a container. */
export function toSummary(sandboxId: string, status: ContainerStatus): ContainerSummary {
  const { id, name, attempt, state, createdAt, image, imageRef, labels, annotations } = status;
  return { id, sandboxId, name, attempt, state, createdAt, image, imageRef, labels, annotations };
}
