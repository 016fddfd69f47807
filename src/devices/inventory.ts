import type { Clock } from "../lib/clock.ts";
import type { Device } from "./device.ts";

/** Milliseconds that the devices of a lost plugin stay in the node's capacity, as in Kubernetes. */
export const GRACE_MS = 5 * 60_000;

/** Milliseconds that a plugin has to come back after a start of the agent before the health of its devices is unknown. */
export const RETURN_MS = 30_000;

/** How many devices of a resource there are, and how many of them may be allocated. */
export interface DeviceCount {
  readonly capacity: number;
  readonly allocatable: number;
}

interface ResourceDevices {
  readonly devices: ReadonlyMap<string, Device>;
  readonly healthy: ReadonlySet<string>;
  /** Monotonic time at which the plugin was lost; undefined while it is connected. */
  readonly lostAt: number | undefined;
}

const NO_DEVICES: ReadonlyMap<string, Device> = new Map();
const NO_IDS: ReadonlySet<string> = new Set();

/**
 * The devices of all plugins, by resource:
 *
 *   connected ──list──► devices, some of them healthy ──lost──► all unhealthy ──grace──► removed: reported as 0
 *       ▲                                                            │                      │
 *       └────────────────────────── connected ───────────────────────┴──────────────────────┘
 */
export class DeviceInventory {
  private readonly resources = new Map<string, ResourceDevices>();
  /** Resources whose plugin has listed no device since the start of the agent, and until when that is expected. */
  private readonly awaited = new Map<string, number>();
  /** Resources without a plugin since longer than the grace period: the node reports 0 of them. */
  private readonly removed = new Set<string>();

  constructor(private readonly clock: Pick<Clock, "now">) {}

  /** A plugin registered: what an earlier one listed counts until it lists its own. */
  connected(resource: string): void {
    this.removed.delete(resource);
    const before = this.resources.get(resource);
    this.resources.set(resource, {
      devices: before?.devices ?? NO_DEVICES,
      healthy: before?.healthy ?? NO_IDS,
      lostAt: undefined,
    });
  }

  /** Takes over a complete list; returns the ids that changed, appeared or are gone: none if it is the one of before. */
  listed(resource: string, list: readonly Device[]): readonly string[] {
    // A plugin that still searches for its devices lists none at first.
    if (list.length > 0) this.awaited.delete(resource);
    const before = this.resources.get(resource);
    const devices = new Map(list.map((device) => [device.id, device]));
    const healthy = new Set(list.filter(({ isHealthy }) => isHealthy).map(({ id }) => id));
    this.resources.set(resource, { devices, healthy, lostAt: undefined });
    const isSame = ({ id, nodes }: Device): boolean =>
      before?.healthy.has(id) === healthy.has(id) && before.devices.get(id)?.nodes.join() === nodes.join();
    const gone = [...(before?.devices.keys() ?? [])].filter((id) => !devices.has(id));
    return [...list.filter((device) => !isSame(device)).map(({ id }) => id), ...gone];
  }

  /** An earlier run of the agent had a plugin of the resource: it registers again, or is gone. */
  expected(resource: string): void {
    this.lost(resource);
    this.awaited.set(resource, this.clock.now().mono + RETURN_MS);
  }

  /** True if the agent has just started, so that what is not known of the resource's devices may not have changed. */
  isExpected(resource: string): boolean {
    return (this.awaited.get(resource) ?? 0) > this.clock.now().mono;
  }

  /** Ends the wait for plugins after a start of the agent; returns the resources of those that listed no device. */
  giveUp(): readonly string[] {
    const names = [...this.awaited.keys()];
    this.awaited.clear();
    return names;
  }

  /** The plugin is gone: nothing of it may be allocated. Returns the ids that were known. */
  lost(resource: string): readonly string[] {
    const devices = this.resources.get(resource)?.devices ?? NO_DEVICES;
    this.resources.set(resource, { devices, healthy: NO_IDS, lostAt: this.clock.now().mono });
    return [...devices.keys()];
  }

  /** Removes resources whose grace period is over; returns their names. */
  expire(): readonly string[] {
    const now = this.clock.now().mono;
    const over = [...this.resources].filter(([, { lostAt }]) => lostAt !== undefined && now - lostAt >= GRACE_MS);
    for (const [name] of over) {
      this.resources.delete(name);
      this.removed.add(name);
    }
    return over.map(([name]) => name);
  }

  /** Milliseconds until the grace period of some resource is over; undefined if no plugin is lost. */
  get nextExpiryMs(): number | undefined {
    const lost = [...this.resources.values()].flatMap(({ lostAt }) => (lostAt === undefined ? [] : [lostAt]));
    return lost.length === 0 ? undefined : Math.max(0, Math.min(...lost) + GRACE_MS - this.clock.now().mono);
  }

  /** True if a plugin has registered the resource, even if it is lost since less than the grace period. */
  has(resource: string): boolean {
    return this.resources.has(resource);
  }

  /** True if the resource has a connected plugin. */
  isConnected(resource: string): boolean {
    const found = this.resources.get(resource);
    return found !== undefined && found.lostAt === undefined;
  }

  devices(resource: string): ReadonlyMap<string, Device> {
    return this.resources.get(resource)?.devices ?? NO_DEVICES;
  }

  healthy(resource: string): ReadonlySet<string> {
    return this.resources.get(resource)?.healthy ?? NO_IDS;
  }

  /** Resources that have, or recently had, a plugin. */
  names(): readonly string[] {
    return [...this.resources.keys()];
  }

  /** What the node reports of each resource. */
  counts(): ReadonlyMap<string, DeviceCount> {
    const gone = [...this.removed].map((name) => [name, { capacity: 0, allocatable: 0 }] as const);
    const known = [...this.resources].map(
      ([name, { devices, healthy }]) => [name, { capacity: devices.size, allocatable: healthy.size }] as const,
    );
    return new Map([...gone, ...known]);
  }
}
