import type { RuntimePort } from "../adapters/runtime/port.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Pod } from "../model/generated/types.ts";
import { POD_UID_LABEL } from "../model/labels.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import { type Csi, composeCsi } from "./csi/compose.ts";
import type { CsiDrivers, CsiNodeReport } from "./csi/driver.ts";
import type { VolumeNode } from "./kind.ts";
import { VOLUME_KINDS } from "./kinds/index.ts";
import { type ReconcilerDeps, type ReconcilerOptions, VolumeReconciler } from "./reconciler.ts";
import { type LayerUsage, StorageAccounts, type StorageDeps, type StorageOptions } from "./storage-accounts.ts";

/** Time limit of measuring the storage of one pod for a user; what is not measured by then is marked so. */
const EXPLAIN_LIMIT_MS = 1000;

export interface StorageParts extends Omit<StorageDeps, "layers" | "pathOf"> {
  readonly volumes: Pick<VolumeReconciler, "source">;
  readonly runtime: Pick<RuntimePort, "writableLayers">;
}

/** The volumes' neighbours, as the agent has them. */
export interface VolumeParts extends Omit<ReconcilerDeps, "node" | "event" | "waiting"> {
  readonly nodeName: string;
  /** Where the CSI drivers of the node are published; undefined without an API server. */
  readonly csiDrivers?: CsiNodeReport | undefined;
  /** The registry of plugins. */
  readonly plugins: { handle(type: "CSIPlugin", handler: CsiDrivers): void };
  readonly rules: {
    resources(): Pick<VolumeNode, "allocatable">;
    admission(): Pick<VolumeNode, "labels">;
  };
  readonly journal: {
    of(pod: Parameters<ReconcilerDeps["event"]>[0]): {
      event(type: "Normal" | "Warning", reason: string, message: string): void;
      setNext: (next: Parameters<ReconcilerDeps["waiting"]>[1]) => void;
    };
  };
}

/** Volumes of pods, with the kinds that need a driver. */
export function composeVolumes(
  parts: VolumeParts,
  options: ReconcilerOptions,
): { readonly volumes: VolumeReconciler; readonly csi: Csi } {
  const { rules, journal } = parts;
  const csi = composeCsi({ ...parts, ...options, report: parts.csiDrivers });
  parts.plugins.handle("CSIPlugin", csi.drivers);
  const volumes = new VolumeReconciler(
    {
      ...parts,
      // Read at each use: reservations and labels change while the agent runs.
      node: {
        get allocatable() {
          return rules.resources().allocatable;
        },
        get labels() {
          return rules.admission().labels;
        },
      },
      event: (pod, { type, reason, message }) => journal.of(pod).event(type, reason, message),
      waiting: (pod, next) => journal.of(pod).setNext(next),
    },
    { ...options, kinds: [...(options.kinds ?? VOLUME_KINDS), csi.kind] },
  );
  return { volumes, csi };
}

/** The storage accounts with the writable layers as the runtime counts them. */
export function composeStorage(parts: StorageParts, options: StorageOptions, signal: AbortSignal): StorageAccounts {
  const layers = async (uid: string | undefined, call: Abortable): Promise<readonly LayerUsage[]> => {
    const found = await parts.runtime.writableLayers(
      uid === undefined ? {} : { labels: { [POD_UID_LABEL]: uid } },
      call,
    );
    return found.map(({ name, labels, bytes, inodes, at }) => ({
      uid: labels[POD_UID_LABEL] ?? "",
      container: name,
      bytes,
      inodes,
      at,
    }));
  };
  const pathOf = (pod: Pod, volume: string): string | undefined => {
    try {
      const source = parts.volumes.source(pod, volume);
      return source.kind === "path" ? source.path : undefined;
    } catch {
      // It is not set up yet, or by another agent before this one.
      return undefined;
    }
  };
  return new StorageAccounts({ ...parts, layers, pathOf }, options, signal);
}

/** The storage of one pod, for `kubelet explain`. */
export function storageOf(
  accounts: StorageAccounts,
  pod: (uid: string) => Pod | undefined,
): (uid: string, options: Abortable) => Promise<PodStorage | undefined> {
  return async (uid, { signal }) => {
    const found = pod(uid);
    if (found === undefined) return undefined;
    return (await accounts.read([found], { signal, limitMs: EXPLAIN_LIMIT_MS })).get(uid);
  };
}
