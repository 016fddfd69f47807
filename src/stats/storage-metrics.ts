import type { Metrics } from "../lib/metrics.ts";
import type { PodStorage, StoragePart } from "../model/pod-storage.ts";
import type { VolumeSpace } from "../model/usage.ts";
import type { PodSample } from "./samples.ts";

/** What is known of the storage of pods. */
export interface StorageSource {
  pods(): ReadonlyMap<string, PodSample>;
  /** What was measured last, by UID; measuring it again begins with the call, if it is due. */
  storage(): ReadonlyMap<string, PodStorage>;
  /** The filesystem at the path of a volume, as it was read last. */
  spaceAt(path: string): VolumeSpace | undefined;
}

/** A claim of a pod with what its volume has. */
interface ClaimSpace {
  readonly labels: readonly string[];
  readonly space: VolumeSpace;
}

const VOLUME_STATS: readonly (readonly [string, string, (space: VolumeSpace) => number | undefined])[] = [
  ["capacity_bytes", "Capacity in bytes of the volume", (of) => of.capacityBytes],
  ["available_bytes", "Number of available bytes in the volume", (of) => of.availableBytes],
  ["used_bytes", "Number of used bytes in the volume", (of) => of.usedBytes],
  ["inodes", "Maximum number of inodes in the volume", (of) => of.inodes],
  ["inodes_free", "Number of free inodes in the volume", (of) => of.inodesFree],
  ["inodes_used", "Number of used inodes in the volume", (of) => of.inodesUsed ?? of.inodes - of.inodesFree],
  [
    "health_status_abnormal",
    "Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is unhealthy, 0 indicates volume is healthy",
    ({ condition }) => condition && Number(condition.isAbnormal),
  ],
];

/** Declares who provides statistics, what logs take up, and the space of claims. Storage is measured while it is scraped. */
export function declareStorageMetrics(metrics: Metrics, provider: "cadvisor" | "cri", source: StorageSource): void {
  const help = "Metrics provider used by kubelet to collect container stats. Values can be 'cadvisor' and 'cri'";
  metrics.gaugeFrom("kubelet_metrics_provider", help, { labels: ["provider"], values: () => [[[provider], 1]] });
  metrics.gaugeFrom(
    "kubelet_container_log_filesystem_used_bytes",
    "Bytes used by the container's logs on the filesystem.",
    { labels: ["uid", "namespace", "pod", "container"], values: () => logs(source) },
  );
  for (const [name, about, value] of VOLUME_STATS) {
    metrics.gaugeFrom(`kubelet_volume_stats_${name}`, about, {
      labels: ["namespace", "persistentvolumeclaim"],
      values: () =>
        claims(source).flatMap(({ labels, space }) => {
          const known = value(space);
          return known === undefined ? [] : [[labels, known] as const];
        }),
    });
  }
}

function logs({ pods, storage }: StorageSource): (readonly [readonly string[], number])[] {
  return [...storage()].flatMap(([uid, { parts }]) => {
    const pod = pods().get(uid);
    if (pod === undefined) return [];
    return parts.flatMap(({ kind, name, usage }) =>
      kind === "log" && usage !== undefined ? [[[uid, pod.namespace, pod.name, name], usage.bytes] as const] : [],
    );
  });
}

/** Each claim once, however many pods use it. */
function claims({ pods, storage, spaceAt }: StorageSource): readonly ClaimSpace[] {
  const found = new Map<string, ClaimSpace>();
  for (const [uid, { parts }] of storage()) {
    const namespace = pods().get(uid)?.namespace;
    for (const { claim, path } of namespace === undefined ? [] : parts.filter(isClaim)) {
      const space = spaceAt(path);
      if (space !== undefined) found.set(`${namespace}/${claim}`, { labels: [namespace ?? "", claim], space });
    }
  }
  return [...found.values()];
}

function isClaim(part: StoragePart): part is StoragePart & { readonly claim: string; readonly path: string } {
  return part.claim !== undefined && part.path !== undefined;
}
