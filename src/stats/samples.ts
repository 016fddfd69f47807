import type { Instant } from "../lib/clock.ts";
import type { PodIdentity } from "../model/step.ts";
import type { CgroupUsage, FilesystemSpace, InterfaceUsage } from "../model/usage.ts";

/** Usage of a cgroup at one moment. */
export interface UsageSample extends CgroupUsage {
  readonly at: Instant;
  /** Mean CPU usage since the sample before, in billionths of a core; absent in the first. */
  readonly nanoCores?: number;
}

export interface ContainerSample {
  readonly id: string;
  readonly name: string;
  /** Wall-clock milliseconds. */
  readonly startedAt: number;
  readonly usage: UsageSample;
}

export interface PodSample extends PodIdentity {
  readonly startedAt: number;
  readonly usage: UsageSample;
  /** Absent in the host's network. */
  readonly network?: readonly InterfaceUsage[];
  readonly containers: readonly ContainerSample[];
}

/** A cgroup of the system's own in the summary: `pods`, `kubelet`, `runtime`, `misc`. */
export interface SystemSample {
  readonly name: string;
  readonly startedAt: number;
  readonly usage: UsageSample;
}

export interface NodeSample {
  readonly usage: UsageSample;
  readonly swap: { readonly total: number; readonly free: number };
  readonly network: readonly InterfaceUsage[];
  readonly system: readonly SystemSample[];
}

/** The filesystems of the node at one moment; one that cannot be read is missing. */
export interface FilesystemSamples {
  readonly at: Instant;
  /** That of the root directory. */
  readonly node?: FilesystemSpace;
  /** That of images. */
  readonly image?: FilesystemSpace;
  /** That of writable layers; often that of images. */
  readonly container?: FilesystemSpace;
  /** What images take up there. */
  readonly imageBytes?: number;
  readonly imageInodes?: number;
}

/** What decides about pressure, at one moment. */
export interface SignalSample {
  readonly at: Instant;
  /** Memory of the node in bytes. */
  readonly memory?: { readonly capacity: number; readonly workingSet: number };
  /** Memory of all pods together; absent if it is not limited. */
  readonly podsMemory?: { readonly capacity: number; readonly workingSet: number };
  readonly tasks?: { readonly most: number; readonly running: number };
  readonly filesystems?: FilesystemSamples;
}
