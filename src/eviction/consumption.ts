import type { Pod } from "../model/generated/types.ts";
import { allContainers, podIdentity } from "../model/pod-facts.ts";
import type { PodStorage, StoragePart } from "../model/pod-storage.ts";
import type { CgroupUsage } from "../model/usage.ts";
import type { Consumption, ContainerConsumption, DiskUsage, PodConsumption } from "./rank.ts";

/** What the sampler has of a pod. */
export interface SampledUsage {
  readonly usage: CgroupUsage;
  readonly containers: readonly { readonly name: string; readonly usage: CgroupUsage }[];
}

/** What pods take, from the samples of their cgroups and, if it was measured, of their storage. Pure. */
export function consumptionOf(
  pods: readonly Pod[],
  samples: ReadonlyMap<string, SampledUsage>,
  storage: ReadonlyMap<string, PodStorage> | undefined,
): Consumption {
  const found = new Map<string, PodConsumption>();
  for (const pod of pods) {
    const { uid } = podIdentity(pod);
    const [sample, stored] = [samples.get(uid), storage?.get(uid)];
    if (sample === undefined && stored === undefined) continue;
    found.set(uid, {
      memory: sample?.usage.memory?.workingSet,
      tasks: sample?.usage.pids,
      containers: allContainers(pod).map(({ name }) => ofContainer(name, sample, stored)),
      volumes: volumesOf(stored),
    });
  }
  return found;
}

function ofContainer(
  name: string,
  sample: SampledUsage | undefined,
  stored: PodStorage | undefined,
): ContainerConsumption {
  const part = (kind: StoragePart["kind"]): DiskUsage | undefined =>
    stored?.parts.find((one) => one.kind === kind && one.name === name)?.usage;
  const memory = sample?.containers.find((container) => container.name === name)?.usage.memory?.workingSet;
  return { name, memory, logs: part("log"), layer: part("layer") };
}

function volumesOf(stored: PodStorage | undefined): DiskUsage {
  const onDisk = (stored?.parts ?? []).filter(({ kind, isMemory }) => kind === "emptyDir" && !isMemory);
  const sum = (unit: "bytes" | "inodes"): number =>
    onDisk.reduce((total, { usage }) => total + (usage?.[unit] ?? 0), 0);
  return { bytes: sum("bytes"), inodes: sum("inodes") };
}
