import { type NumaMask, numaMask } from "../model/topology.ts";
import type { Device } from "./device.ts";

/** How many devices there are, by the NUMA nodes that they are attached to. */
export type MaskCounts = ReadonlyMap<NumaMask, number>;

/** The bit of every NUMA node that the machine does not have; real ones are numbered from 0 to 63. */
const UNKNOWN: NumaMask = 1n << 64n;

/**
 * The NUMA nodes of devices as sets. Nodes that the machine does not have become one: a plugin could name as many sets of
 * them as it has devices. They are not left out: a reused device that is attached only to such a node is in no hint, as in
 * Kubernetes.
 */
export class DeviceMasks {
  private readonly isKnown: ReadonlySet<number>;
  /** By the list of nodes: devices of the same nodes share it. */
  private readonly byNodes = new WeakMap<readonly number[], NumaMask>();
  private readonly ofAll = new WeakMap<ReadonlyMap<string, Device>, MaskCounts>();

  /** `nodes`: the NUMA nodes of the machine. */
  constructor(readonly nodes: readonly number[]) {
    this.isKnown = new Set(nodes);
  }

  /** 0 for a device without NUMA nodes. */
  of(device: Device | undefined): NumaMask {
    if (device === undefined) return 0n;
    const { nodes } = device;
    const found = this.byNodes.get(nodes);
    if (found !== undefined) return found;
    const known = nodes.filter((node) => this.isKnown.has(node));
    const mask = numaMask(known) | (known.length < nodes.length ? UNKNOWN : 0n);
    this.byNodes.set(nodes, mask);
    return mask;
  }

  count(ids: Iterable<string>, devices: ReadonlyMap<string, Device>): MaskCounts {
    const counts = new Map<NumaMask, number>();
    for (const id of ids) {
      const mask = this.of(devices.get(id));
      counts.set(mask, (counts.get(mask) ?? 0) + 1);
    }
    return counts;
  }

  /** Of all devices of a list, which are counted once. */
  countAll(devices: ReadonlyMap<string, Device>): MaskCounts {
    const counts = this.ofAll.get(devices) ?? this.count(devices.keys(), devices);
    this.ofAll.set(devices, counts);
    return counts;
  }
}
