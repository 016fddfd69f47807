import type { Pod } from "../model/generated/types.ts";
import { allContainers, podIdentity } from "../model/pod-facts.ts";
import type { PodStorage, StoragePart } from "../model/pod-storage.ts";
import type { CgroupUsage } from "../model/usage.ts";
import type { Consumption, ContainerConsumption, DiskUsage, PodConsumption } from "./rank.ts";

/** What the sampler has of a pod. */
export interface SampledUsage {
  readonly usage: CgroupUsage;
  /** Its own cgroup, if it has one. */
  readonly cgroup?: string | undefined;
  readonly containers: readonly { readonly name: string; readonly usage: CgroupUsage }[];
}

/** What was measured of pods on disk, by UID. */
export interface MeasuredDisk {
  readonly storage: ReadonlyMap<string, PodStorage>;
  readonly deleted: ReadonlyMap<string, NonNullable<PodConsumption["deleted"]>>;
}

/** What pods take, from the samples of their cgroups and, if it was measured, of their storage. Pure. */
export function consumptionOf(
  pods: readonly Pod[],
  samples: ReadonlyMap<string, SampledUsage>,
  disk: MeasuredDisk | undefined,
): Consumption {
  const found = new Map<string, PodConsumption>();
  for (const pod of pods) {
    const { uid } = podIdentity(pod);
    const [sample, stored, deleted] = [samples.get(uid), disk?.storage.get(uid), disk?.deleted.get(uid)];
    if (sample === undefined && stored === undefined) continue;
    found.set(uid, {
      memory: sample?.usage.memory?.workingSet,
      // A runtime that measures the pod counts its processes instead.
      tasks: sample?.usage.pids ?? sample?.usage.processes,
      containers: allContainers(pod).map(({ name }) => ofContainer(name, sample, stored)),
      volumes: localFiles(stored),
      ...(deleted && { deleted }),
    });
  }
  return found;
}

function ofContainer(
  name: string,
  sample: SampledUsage | undefined,
  stored: PodStorage | undefined,
): ContainerConsumption {
  // Terminated instances of the container count: they take the space that is missing.
  const part = (kind: StoragePart["kind"]): DiskUsage | undefined => {
    const all = stored?.parts.filter((one) => one.kind === kind && one.name === name) ?? [];
    return sumOf(all.flatMap(({ usage }) => usage ?? []));
  };
  const memory = sample?.containers.find((container) => container.name === name)?.usage.memory?.workingSet;
  return { name, memory, logs: part("log"), layer: part("layer") };
}

function sumOf(usages: readonly DiskUsage[]): DiskUsage | undefined {
  if (usages.length === 0) return undefined;
  const sum = (unit: keyof DiskUsage): number => usages.reduce((total, usage) => total + usage[unit], 0);
  return { bytes: sum("bytes"), inodes: sum("inodes") };
}

/** Volumes on disk, and files of the agent that containers can write to. */
function localFiles(stored: PodStorage | undefined): DiskUsage {
  const isLocal = ({ kind }: StoragePart): boolean => kind === "emptyDir" || kind === "file";
  const onDisk = (stored?.parts ?? []).filter((part) => isLocal(part) && !part.isMemory);
  return sumOf(onDisk.flatMap(({ usage }) => usage ?? [])) ?? { bytes: 0, inodes: 0 };
}
