import type { Instant } from "../lib/clock.ts";
import type { FilesystemSpace } from "../model/usage.ts";

/** What is measured against thresholds. */
export type Signal =
  | "memory.available"
  | "allocatableMemory.available"
  | "nodefs.available"
  | "nodefs.inodesFree"
  | "imagefs.available"
  | "imagefs.inodesFree"
  | "containerfs.available"
  | "containerfs.inodesFree"
  | "pid.available";

/** A condition of the node that signals raise. */
export type PressureCondition = "MemoryPressure" | "DiskPressure" | "PIDPressure";

/** What the node is short of. */
export type StarvedResource = "memory" | "ephemeral-storage" | "inodes" | "pids";

interface SignalFacts {
  readonly condition: PressureCondition;
  readonly resource: StarvedResource;
}

const MEMORY: SignalFacts = { condition: "MemoryPressure", resource: "memory" };
const DISK: SignalFacts = { condition: "DiskPressure", resource: "ephemeral-storage" };
const INODES: SignalFacts = { condition: "DiskPressure", resource: "inodes" };

/** Every signal with its condition and its resource. */
export const SIGNALS: Readonly<Record<Signal, SignalFacts>> = {
  "memory.available": MEMORY,
  "allocatableMemory.available": MEMORY,
  "nodefs.available": DISK,
  "nodefs.inodesFree": INODES,
  "imagefs.available": DISK,
  "imagefs.inodesFree": INODES,
  "containerfs.available": DISK,
  "containerfs.inodesFree": INODES,
  "pid.available": { condition: "PIDPressure", resource: "pids" },
};

export function isSignal(name: string): name is Signal {
  return Object.hasOwn(SIGNALS, name);
}

/** The conditions in the order in which they are shown. */
export const CONDITIONS: readonly PressureCondition[] = ["MemoryPressure", "DiskPressure", "PIDPressure"];

/** What there is left of a signal's resource, in bytes or pieces. */
export interface Observation {
  readonly available: number;
  readonly capacity: number;
  readonly at: Instant;
}

export type Observations = ReadonlyMap<Signal, Observation>;

interface MemorySignal {
  readonly capacity: number;
  readonly workingSet: number;
}

/** What the sampler reads for eviction; parts that cannot be read are missing. */
export interface NodeSignals {
  readonly at: Instant;
  readonly memory?: MemorySignal;
  readonly podsMemory?: MemorySignal;
  readonly tasks?: { readonly most: number; readonly running: number };
  readonly filesystems?: {
    readonly at: Instant;
    readonly node?: FilesystemSpace;
    readonly image?: FilesystemSpace;
    readonly container?: FilesystemSpace;
  };
}

/**
 * Where images and writable layers are: both on the filesystem of the root directory, both on one of their own, or only
 * images on one of their own.
 */
export type Layout = "single" | "dedicated" | "split";

/** The layout; until the filesystem of images is known it counts as the node's. */
export function layoutOf({ filesystems }: NodeSignals): Layout {
  const { node, image, container = image } = filesystems ?? {};
  if (node === undefined || image === undefined || node.device === image.device) return "single";
  return container?.device === image.device ? "dedicated" : "split";
}

/** The observations that follow from what was read. Pure. */
export function observationsOf(signals: NodeSignals): Observations {
  const { at, memory, podsMemory, tasks, filesystems } = signals;
  const found = new Map<Signal, Observation>();
  const ofMemory = ({ capacity, workingSet }: MemorySignal): Observation => ({
    available: Math.max(0, capacity - workingSet),
    capacity,
    at,
  });
  if (memory !== undefined) found.set("memory.available", ofMemory(memory));
  if (podsMemory !== undefined) found.set("allocatableMemory.available", ofMemory(podsMemory));
  if (tasks !== undefined)
    found.set("pid.available", { available: Math.max(0, tasks.most - tasks.running), capacity: tasks.most, at });
  if (filesystems === undefined) return found;
  const place = (name: "nodefs" | "imagefs" | "containerfs", space: FilesystemSpace | undefined): void => {
    if (space === undefined) return;
    const { availableBytes, capacityBytes, inodes, inodesFree } = space;
    found.set(`${name}.available`, { available: availableBytes, capacity: capacityBytes, at: filesystems.at });
    // Some filesystems, such as btrfs, do not count inodes.
    if (inodes > 0) found.set(`${name}.inodesFree`, { available: inodesFree, capacity: inodes, at: filesystems.at });
  };
  place("nodefs", filesystems.node);
  place("imagefs", filesystems.image);
  place("containerfs", filesystems.container ?? filesystems.image);
  return found;
}
