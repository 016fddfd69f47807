import type { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";

/** One device, as its plugin reports it. */
export interface Device {
  readonly id: string;
  readonly isHealthy: boolean;
  /** NUMA nodes that it is attached to; empty if the plugin does not report them. */
  readonly nodes: readonly number[];
}

/** The devices of one resource that a container has, and what its plugin answered to the allocation. */
export interface ContainerDevices {
  /** Ids by NUMA node; `NO_NODE` has those without one. A device of two nodes is listed at both. */
  readonly byNode: ReadonlyMap<number, readonly string[]>;
  readonly answer: ContainerAllocateResponse;
}

/** The container and the resource that devices are allocated for. */
export interface DeviceKey {
  readonly uid: string;
  readonly container: string;
  readonly resource: string;
}

/** Stands for the NUMA node of devices without one, as in the checkpoint of Kubernetes. */
export const NO_NODE = -1;

/** NUMA nodes are numbered from 0 up to one less. */
export const MOST_NODES = 64;

/** Returns the ids of a container's devices, each once. */
export function deviceIds({ byNode }: Pick<ContainerDevices, "byNode">): ReadonlySet<string> {
  return new Set([...byNode.values()].flat());
}

/** Groups ids by the NUMA nodes of their devices. */
export function byNode(ids: Iterable<string>, devices: ReadonlyMap<string, Device>): ContainerDevices["byNode"] {
  const groups = new Map<number, string[]>();
  for (const id of ids) {
    const nodes = devices.get(id)?.nodes ?? [];
    for (const node of nodes.length === 0 ? [NO_NODE] : nodes) {
      const group = groups.get(node);
      if (group === undefined) groups.set(node, [id]);
      else group.push(id);
    }
  }
  return groups;
}
