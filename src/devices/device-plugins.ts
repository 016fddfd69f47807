import { join } from "node:path";
import type { PluginClient } from "../adapters/devices/plugin-client.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { Listeners } from "../lib/listeners.ts";
import type { Logger } from "../lib/log.ts";
import type { DeviceCheckpoint } from "./checkpoint.ts";
import { type CheckpointFile, CheckpointStore } from "./checkpoint-store.ts";
import { type Device, MOST_NODES, NO_NODE } from "./device.ts";
import { DeviceInventory, RETURN_MS } from "./inventory.ts";
import { PluginConnections } from "./plugin-connections.ts";
import { PodDevices } from "./pod-devices.ts";
import { endpointProblem, resourceNameProblem, versionProblem } from "./register-request.ts";

/** Resources that ever had a plugin: each is part of the node's status and of metrics, also when its plugin is gone. */
const MOST_RESOURCES = 500;
/**
 * Bytes of healthy ids in the checkpoint. Only the names of resources are restored from it, and lists of some plugins must
 * not make it too large to be read: then nobody would know who has what.
 */
const MOST_REGISTERED_BYTES = 4 * 1024 * 1024;

/** What `DevicePlugins` is built from. */
export interface DevicePluginsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly file: CheckpointFile;
  connect(socket: string): PluginClient;
  /** A plugin asked on `kubelet.sock` to be registered for a resource with a valid name. */
  registered(resource: string): void;
  allocated(resource: string, seconds: number): void;
}

/** A plugin that asks to be used. */
export interface PluginRequest {
  readonly resource: string;
  readonly versions: readonly string[];
  readonly socket: string;
}

/**
 * The device plugins of the node with what they listed, and who has which devices. Restores the checkpoint of an earlier
 * run at once: until their plugins register again, its resources have no devices, and containers keep theirs.
 */
export class DevicePlugins {
  readonly pods = new PodDevices();
  readonly inventory: DeviceInventory;
  readonly connections: PluginConnections;
  readonly store: CheckpointStore;
  /** True if there was no checkpoint: the node is new, and extended resources that its object has are stale. */
  readonly isNew: boolean;
  /** UIDs of pods whose devices changed; called for each change of the node's devices. */
  private readonly changes = new Listeners<readonly string[]>();
  private expiry: Timer | undefined;
  private back: Timer | undefined;

  constructor(
    private readonly deps: DevicePluginsDeps,
    private readonly options: { readonly directory: string },
    private readonly signal: AbortSignal,
  ) {
    const { clock, log, file } = deps;
    this.inventory = new DeviceInventory(clock);
    this.store = new CheckpointStore({
      file,
      log,
      clock,
      state: () => ({
        entries: [...this.pods.entries()],
        registered: registeredIds(this.inventory),
      }),
      found: (checkpoint) => this.restore(checkpoint),
    });
    this.connections = new PluginConnections(
      {
        ...deps,
        connected: (resource) => this.changed(resource, [], () => this.inventory.connected(resource)),
        listed: (resource, devices) => this.listed(resource, devices),
        isKept: (resource) => this.inventory.has(resource),
        lost: (resource) => this.lost(resource),
      },
      signal,
    );
    const cancel = (): void => {
      this.expiry?.cancel();
      this.back?.cancel();
    };
    signal.addEventListener("abort", cancel, { once: true });
    const found = this.store.load();
    if (found !== undefined) this.restore(found);
    this.isNew = this.store.wasMissing;
  }

  /** Connects a plugin that registered on `kubelet.sock`, with a socket beside it. Rejects with why it is refused. */
  async registerEndpoint(
    request: { readonly resourceName: string; readonly version: string; readonly endpoint: string },
    options: Abortable,
  ): Promise<void> {
    const { resourceName: resource, version } = request;
    // Kubernetes counts every call, whatever comes of it; an invalid name would be one more label for each.
    if (resourceNameProblem(resource) === undefined) this.deps.registered(resource);
    const problem = endpointProblem(request.endpoint);
    if (problem !== undefined) throw new Error(problem);
    const socket = join(this.options.directory, request.endpoint);
    await this.register({ resource, versions: [version], socket }, options);
  }

  /** Connects a plugin; rejects with why it is refused. */
  async register({ resource, versions, socket }: PluginRequest, options: Abortable): Promise<void> {
    const problem = versionProblem(versions) ?? resourceNameProblem(resource);
    if (problem !== undefined) throw new Error(problem);
    const known = this.inventory.counts();
    if (!known.has(resource) && known.size >= MOST_RESOURCES) {
      throw new Error(`more than ${MOST_RESOURCES} resources had device plugins since the agent started`);
    }
    await this.connections.register(resource, socket, options);
  }

  /** Calls `fn` after each change of devices with the UIDs of the pods that have one of them, until the signal aborts. */
  onChange(fn: (uids: readonly string[]) => void, options: Abortable): void {
    this.changes.add(fn, options);
  }

  /** How many devices count as there when a pod is admitted: those that are healthy, and those that pods have. */
  admissible(): ReadonlyMap<string, number> {
    const names = new Set([...this.inventory.counts().keys(), ...this.pods.resources()]);
    return new Map(
      [...names].map((name) => {
        const ids = new Set([...this.inventory.healthy(name), ...this.pods.allocated(name).keys()]);
        return [name, ids.size];
      }),
    );
  }

  private restore({ entries, registered }: DeviceCheckpoint): void {
    for (const { devices, ...key } of entries) {
      if (isSensible(key.resource, devices.byNode.keys())) this.pods.set(key, devices);
      else this.deps.log.warn("Ignored an entry of the device checkpoint that no device plugin can have", { ...key });
    }
    // Also a plugin that was gone for long before may be back after a reboot.
    const known = new Set([...registered.keys(), ...this.pods.resources()]);
    const missing = [...known].filter((name) => isSensible(name) && !this.inventory.has(name));
    for (const name of missing) this.inventory.expected(name);
    this.armExpiry();
    this.back?.cancel();
    // Who did not come back has devices of unknown health, and pods that waited for it are rejected.
    this.back = this.deps.clock.after(RETURN_MS, () => {
      const uids = this.inventory.giveUp().flatMap((name) => this.holders(name));
      if (uids.length > 0) this.changes.call([...new Set(uids)]);
    });
  }

  private listed(resource: string, devices: readonly Device[]): void {
    const before = this.inventory.counts().get(resource);
    const wasExpected = this.inventory.isExpected(resource);
    const ids = this.inventory.listed(resource, devices);
    if (ids.length === 0) return;
    const { size: healthy } = this.inventory.healthy(resource);
    const hasOtherCounts = before?.capacity !== devices.length || before.allocatable !== healthy;
    if (hasOtherCounts) this.deps.log.info("Updated devices", { resource, devices: devices.length, healthy });
    // After a start of the agent pods wait for this list, also those whose devices are not in it.
    this.changed(resource, wasExpected ? [...ids, ...this.pods.allocated(resource).keys()] : ids);
  }

  /** UIDs of the pods that have devices of the resource. */
  private holders(resource: string): readonly string[] {
    return this.pods.podsWith(resource, new Set(this.pods.allocated(resource).keys()));
  }

  private lost(resource: string): void {
    this.changed(resource, this.inventory.lost(resource));
    this.armExpiry();
  }

  /** Removes the devices of lost plugins when their grace period is over. */
  private armExpiry(): void {
    this.expiry?.cancel();
    const { nextExpiryMs } = this.inventory;
    if (nextExpiryMs === undefined || this.signal.aborted) return;
    this.expiry = this.deps.clock.after(nextExpiryMs, () => {
      for (const resource of this.inventory.expire()) {
        this.deps.log.info("Removed resource of lost device plugin", { resource });
        this.changed(resource, []);
      }
      this.armExpiry();
    });
  }

  private changed(resource: string, ids: readonly string[], change?: () => void): void {
    change?.();
    this.store.saveLater();
    this.changes.call(ids.length === 0 ? [] : this.pods.podsWith(resource, new Set(ids)));
  }
}

/** False for a resource of the node itself, or for devices on NUMA nodes that cannot be: any plugin can write the file. */
function isSensible(resource: string, nodes: Iterable<number> = []): boolean {
  if (resourceNameProblem(resource) !== undefined) return false;
  return [...nodes].every((node) => Number.isInteger(node) && node >= NO_NODE && node < MOST_NODES);
}

/** Returns the ids of healthy devices by resource; a list that does not fit any more is empty. */
function registeredIds(inventory: DeviceInventory): ReadonlyMap<string, readonly string[]> {
  let left = MOST_REGISTERED_BYTES;
  const kept = (ids: ReadonlySet<string>): readonly string[] => {
    let bytes = 0;
    for (const id of ids) bytes += Buffer.byteLength(id);
    if (bytes > left) return [];
    left -= bytes;
    return [...ids];
  };
  return new Map(inventory.names().map((name) => [name, kept(inventory.healthy(name))]));
}
