import {
  ContainerAllocateResponse,
  Device,
  ListAndWatchResponse,
} from "../../src/adapters/devices/generated/deviceplugin.ts";
import type { DeviceList, PluginClient } from "../../src/adapters/devices/plugin-client.ts";
import { RuntimeError } from "../../src/adapters/runtime/port.ts";
import type { CheckpointFile } from "../../src/devices/checkpoint-store.ts";
import { DeviceAllocator } from "../../src/devices/device-allocator.ts";
import { DevicePlugins } from "../../src/devices/device-plugins.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { FakeClock } from "../../src/lib/clock.ts";
import { silent } from "../../src/lib/log.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import { ANYWHERE, type TopologyHint } from "../../src/model/topology.ts";

/** A list of devices by id: their health, and their NUMA nodes. */
export type Listing = Readonly<Record<string, { readonly health?: string; readonly nodes?: readonly number[] }>>;

/** A plugin without a wire: it lists when told, and answers as scripted. */
export class ScriptedPlugin implements PluginClient {
  readonly calls: string[] = [];
  /** Milliseconds that the agent gave each call. */
  readonly deadlines = new Map<string, number>();
  isClosed = false;
  /** What the next calls do instead of answering, by method. */
  readonly faults = new Map<string, Error | "hang">();
  /** Awaited before Allocate is answered. */
  before: (() => Promise<void>) | undefined;
  preferred: readonly string[] | undefined;
  preStartRequired = false;
  answer: ContainerAllocateResponse | undefined = ContainerAllocateResponse.fromPartial({ envs: { A: "1" } });
  private lists: DeviceList[] = [];
  private wake: () => void = () => undefined;
  private fail: (error: Error) => void = () => undefined;
  private readonly closed = new Promise<never>((_, reject) => (this.fail = reject));
  private ended: Error | true | undefined;

  constructor() {
    this.closed.catch(() => undefined);
  }

  list(listing: Listing): void {
    const devices = Object.entries(listing).map(([ID, { health = "Healthy", nodes = [] }]) =>
      Device.fromPartial({ ID, health, topology: { nodes: nodes.map((node) => ({ ID: node })) } }),
    );
    const bytes = ListAndWatchResponse.encode({ devices }).finish().length;
    this.send({ bytes, read: () => ({ devices }) });
  }

  /** Sends a list that need not be one. */
  send(list: DeviceList): void {
    this.lists.push(list);
    this.wake();
  }

  end(error?: Error): void {
    this.ended = error ?? true;
    this.wake();
  }

  async options({ timeoutMs }: { timeoutMs: number }) {
    this.deadlines.set("options", timeoutMs);
    await this.meet("options");
    return { preStartRequired: this.preStartRequired, getPreferredAllocationAvailable: this.preferred !== undefined };
  }

  async *listAndWatch({ signal }: { signal: AbortSignal }) {
    signal.addEventListener("abort", () => this.wake(), { once: true });
    for (;;) {
      signal.throwIfAborted();
      const list = this.lists.shift();
      if (list !== undefined) yield list;
      else if (this.ended === true) return;
      else if (this.ended !== undefined) throw this.ended;
      else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  async prefer(
    { offered, included, size }: { offered: readonly string[]; included: readonly string[]; size: number },
    { timeoutMs }: { timeoutMs: number },
  ) {
    this.deadlines.set("prefer", timeoutMs);
    await this.meet(`prefer ${size} of ${offered.join()} with ${included.join()}`, "prefer");
    return this.preferred ?? [];
  }

  async allocate(ids: readonly string[], { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number }) {
    this.deadlines.set("allocate", timeoutMs);
    await this.meet(`allocate ${ids.join()}`, "allocate", signal);
    // Calls in flight fail when the connection is closed.
    if (this.before !== undefined) await Promise.race([this.before(), this.closed]);
    return this.answer;
  }

  async preStart(ids: readonly string[], { timeoutMs }: { timeoutMs: number }) {
    this.deadlines.set("preStart", timeoutMs);
    await this.meet(`preStart ${ids.join()}`, "preStart");
  }

  close(): void {
    this.isClosed = true;
  }

  abort(): void {
    this.close();
    this.fail(unavailable);
  }

  private async meet(call: string, method = call, signal?: AbortSignal): Promise<void> {
    this.calls.push(call);
    const fault = this.faults.get(method);
    if (fault === "hang") {
      await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("aborted"))));
    }
    if (fault instanceof Error) throw fault;
  }
}

export const unavailable = new RuntimeError("Unavailable", "connection refused");
export const timeout = new RuntimeError("Timeout", "deadline exceeded");

interface Admission {
  readonly affinity: TopologyHint;
  readonly signal: AbortSignal;
}

/** Device plugins, allocator and checkpoint in memory; `restart` makes them anew from the checkpoint. */
export class DeviceBench {
  readonly clock = new FakeClock();
  /** Plugins by socket. */
  readonly sockets = new Map<string, ScriptedPlugin>();
  readonly waits: string[] = [];
  /** Resources that plugins asked to be registered for on `kubelet.sock`. */
  readonly registered: string[] = [];
  /** Those of `waits` that have not ended. */
  readonly openWaits: string[] = [];
  readonly warnings: string[] = [];
  readonly changes: (readonly string[])[] = [];
  checkpoint: string | undefined;
  /** Writes of the checkpoint fail with it. */
  full: Error | undefined;
  /** Reads of the checkpoint fail with it. */
  unreadable: Error | undefined;
  /** What the next plugins prefer. */
  preferred: readonly string[] | undefined;
  /** Claims may provide extended resources. */
  hasClaims = true;
  /** Where the agent that runs keeps its checkpoint. */
  file!: CheckpointFile;
  plugins!: DevicePlugins;
  allocator!: DeviceAllocator;
  private stop = manyListeners();

  constructor(private readonly nodes: readonly number[] = [0, 1]) {
    this.restart();
  }

  /** Admits a pod as the agent does: reserves for all containers at once, then has the plugins agree. */
  async admit(pod: Pod, { affinity = ANYWHERE, signal = this.stop.signal }: Partial<Admission> = {}): Promise<void> {
    const { allocator } = this;
    try {
      for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
        allocator.reserve(pod, container, affinity);
      }
      await allocator.commit(pod, { signal });
    } catch (error) {
      allocator.release(pod.metadata.uid ?? "");
      throw error;
    }
  }

  /** Ends the agent, as by a kill, and begins another. */
  restart(): void {
    this.stop.abort();
    this.stop = manyListeners();
    const { signal } = this.stop;
    this.file = {
      readCheckpoint: () => {
        if (this.unreadable !== undefined) throw this.unreadable;
        return this.checkpoint;
      },
      writeCheckpoint: (text) => {
        if (this.full !== undefined) return Promise.reject(this.full);
        if (!signal.aborted) this.checkpoint = text;
        return Promise.resolve();
      },
      setAside: () => "aside",
    };
    this.plugins = new DevicePlugins(
      {
        clock: this.clock,
        log: { ...silent, warn: (message) => this.warnings.push(message) },
        file: this.file,
        connect: (socket) => this.sockets.get(socket) ?? dead(),
        registered: (resource) => this.registered.push(resource),
        allocated: () => undefined,
      },
      { directory: "/plugins" },
      signal,
    );
    this.plugins.onChange((uids) => this.changes.push(uids), { signal });
    const { inventory, pods, connections, store } = this.plugins;
    this.allocator = new DeviceAllocator(
      {
        inventory,
        pods,
        plugins: connections,
        ready: () => store.ready(),
        save: () => store.save(),
        saveLater: () => store.saveLater(),
        waiting: (_pod, what) => {
          this.waits.push(what);
          this.openWaits.push(what);
          let hasEnded = false;
          return () => {
            if (!hasEnded) this.openWaits.splice(this.openWaits.indexOf(what), 1);
            hasEnded = true;
          };
        },
      },
      { nodes: this.nodes, hasClaims: () => this.hasClaims },
    );
  }

  /** A plugin that registers, and lists if told. */
  async plugin(resource: string, listing?: Listing, socket = `${resource}.sock`): Promise<ScriptedPlugin> {
    const plugin = new ScriptedPlugin();
    plugin.preferred = this.preferred;
    this.sockets.set(socket, plugin);
    const registered = this.register(resource, socket);
    await this.clock.advance(0);
    await registered;
    if (listing !== undefined) plugin.list(listing);
    await this.clock.advance(0);
    return plugin;
  }

  register(resource: string, socket: string): Promise<void> {
    const { signal } = this.stop;
    return this.plugins.register({ resource, versions: ["v1beta1"], socket }, { signal });
  }

  close(): void {
    this.stop.abort();
  }
}

/** A socket where nobody listens. */
function dead(): ScriptedPlugin {
  const plugin = new ScriptedPlugin();
  plugin.faults.set("options", unavailable);
  return plugin;
}
