import type { Instant } from "../lib/clock.ts";
import type { PodIdentity } from "../model/step.ts";
import type { CgroupDetails, CgroupUsage, FilesystemSpace, InterfaceUsage, MountedFilesystem } from "../model/usage.ts";

/** Usage of a cgroup at one moment. */
export interface UsageSample extends CgroupUsage {
  readonly at: Instant;
  /** Mean CPU usage since the sample before, in billionths of a core; absent in the first. */
  readonly nanoCores?: number;
  /** Only while somebody asks for it. */
  readonly details?: CgroupDetails;
}

export interface ContainerSample {
  readonly id: string;
  readonly name: string;
  /** Its path. */
  readonly cgroup: string;
  /** What the runtime calls its image. */
  readonly image: string;
  /** Wall-clock milliseconds. */
  readonly startedAt: number;
  readonly usage: UsageSample;
}

export interface PodSample extends PodIdentity {
  readonly startedAt: number;
  /** Its path; absent if the pod has none of its own. */
  readonly cgroup?: string;
  readonly usage: UsageSample;
  /** Absent in the host's network. */
  readonly network?: readonly InterfaceUsage[];
  readonly containers: readonly ContainerSample[];
  /** The sandbox; only while somebody asks for details. */
  readonly sandbox?: ContainerSample;
}

/** A cgroup of the system's own in the summary: `pods`, `kubelet`, `runtime`, `misc`. */
export interface SystemSample {
  readonly name: string;
  /** Its path. */
  readonly cgroup: string;
  readonly startedAt: number;
  readonly usage: UsageSample;
}

export interface NodeSample {
  /** Start of the machine, in wall-clock milliseconds. */
  readonly bootedAt: number;
  readonly usage: UsageSample;
  readonly swap: { readonly total: number; readonly free: number };
  readonly network: readonly InterfaceUsage[];
  readonly system: readonly SystemSample[];
  /** Cgroups between that of all pods and those of pods; only while somebody asks for details. */
  readonly classes: readonly SystemSample[];
  /** Those that are mounted; only while somebody asks for details. */
  readonly filesystems: readonly MountedFilesystem[];
  /** Those of the agent and of the runtime. */
  readonly disks: FilesystemSamples;
  /** Processes and threads, and how many there may be. */
  readonly tasks?: { readonly most: number; readonly running: number };
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
  /** What writable layers take up, if the runtime reports them apart. */
  readonly containerBytes?: number;
  readonly containerInodes?: number;
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
