import { readSelinuxContexts } from "../adapters/host/selinux-contexts.ts";
import type { RuntimePort } from "../adapters/runtime/port.ts";
import { type agentOptions, isGateOn, type OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Live } from "../lib/live.ts";
import type { Loop } from "../lib/loop.ts";
import type { Pod } from "../model/generated/types.ts";
import { POD_UID_LABEL } from "../model/labels.ts";
import type { ObservedPod } from "../model/observed.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import type { ClaimIdentity } from "../model/step.ts";
import { composeCsi } from "./csi/compose.ts";
import type { CsiDrivers, CsiNodeReport } from "./csi/driver.ts";
import { composeDisks } from "./disks/compose.ts";
import { DriverSpaces } from "./driver-spaces.ts";
import type { VolumeNode } from "./kind.ts";
import { VOLUME_KINDS } from "./kinds/index.ts";
import { allInUse } from "./node-volumes.ts";
import { type ReconcilerDeps, type ReconcilerOptions, VolumeReconciler } from "./reconciler.ts";
import { VolumeLabels } from "./selinux/volume-label.ts";
import { type LayerUsage, StorageAccounts, type StorageDeps, type StorageOptions } from "./storage-accounts.ts";
import type { NodeVolumes } from "./volumes-in-use.ts";

/** The gate for mounting volumes of all access modes with a label of SELinux. */
const LABEL_GATE = "SELinuxMount";
/** The gate for the health of volumes that CSI drivers report. */
const HEALTH_GATE = "CSIVolumeHealth";
/** Time limit of measuring the storage of one pod for a user; what is not measured by then is marked so. */
const EXPLAIN_LIMIT_MS = 1000;

export interface StorageParts extends Omit<StorageDeps, "layers" | "pathOf"> {
  readonly volumes: Pick<VolumeReconciler, "place">;
  readonly runtime: Pick<RuntimePort, "writableLayers">;
  /** The state of containers: the runtime lists layers of terminated ones, too. */
  readonly observer?: { get(uid: string): Pick<ObservedPod, "containers"> | undefined };
}

/** The volumes' neighbours, as the agent has them. */
export interface VolumeParts extends Omit<ReconcilerDeps, "node" | "event" | "waiting" | "reject"> {
  /** Ends a pod that cannot start on this node. */
  evict(uid: string, failure: { readonly reason: string; readonly message: string }): void;
  readonly nodeName: string;
  /** Aborts when the agent stops. */
  readonly signal: AbortSignal;
  /** Where the CSI drivers of the node are published; undefined without an API server. */
  readonly csiDrivers?: CsiNodeReport | undefined;
  readonly store: OptionStore<typeof agentOptions>;
  /** The registry of plugins. */
  readonly plugins: { handle(type: "CSIPlugin", handler: CsiDrivers): void };
  readonly rules: {
    resources(): Pick<VolumeNode, "allocatable">;
    admission(): Pick<VolumeNode, "labels">;
  };
  readonly journal: {
    of(pod: Parameters<ReconcilerDeps["event"]>[0]): {
      event(
        type: "Normal" | "Warning",
        reason: string,
        what: { readonly message: string; readonly claim?: ClaimIdentity },
      ): void;
      setNext: (next: Parameters<ReconcilerDeps["waiting"]>[1]) => void;
    };
  };
}

/** The attachable volumes of the node, for its status on the API server and from it. */
export interface AttachableVolumes {
  /** Undefined until it is known what an earlier agent left mounted. */
  readonly volumesInUse: Live<readonly string[] | undefined>;
  nodeVolumes(reported: NodeVolumes): void;
}

export interface ComposedVolumes {
  readonly volumes: VolumeReconciler;
  readonly attachable: AttachableVolumes;
  readonly spaces: DriverSpaces;
  readonly loops: readonly Loop[];
}

/** Volumes of pods, with the kinds that need a driver. */
export function composeVolumes(parts: VolumeParts, options: ReconcilerOptions): ComposedVolumes {
  const { rules, journal, store } = parts;
  const spaces = new DriverSpaces(parts, parts.signal);
  const reportsHealth = isGateOn(HEALTH_GATE, store.current.featureGates);
  const isForAllModes = isGateOn(LABEL_GATE, store.current.featureGates);
  const selinux = new VolumeLabels({ ...parts, contexts: readSelinuxContexts(), isForAllModes });
  const csi = composeCsi({ ...parts, ...options, report: parts.csiDrivers, reportsHealth, selinux });
  const hasApiServer = parts.csiDrivers !== undefined;
  // The local API has no controller that attaches.
  const controllerAttaches = (): boolean =>
    hasApiServer && !store.current.apiserver && store.current.enableControllerAttachDetach;
  const { volumePluginDir } = store.current;
  const disks = composeDisks({ ...parts, ...options, controllerAttaches, volumePluginDir });
  const health = { name: "volume health", run: (stop: AbortSignal) => watchHealth(spaces, store, stop) };
  parts.plugins.handle("CSIPlugin", csi.drivers);
  const volumes = new VolumeReconciler(
    {
      ...parts,
      spaces,
      // Read at each use: reservations and labels change while the agent runs.
      node: {
        get allocatable() {
          return rules.resources().allocatable;
        },
        get labels() {
          return rules.admission().labels;
        },
        get syncMs() {
          return store.current.syncFrequency;
        },
      },
      event: (pod, { type, reason, ...what }) => journal.of(pod).event(type, reason, what),
      waiting: (pod, next) => journal.of(pod).setNext(next),
      reject: (pod, failure) => {
        journal.of(pod).event("Warning", failure.reason, { message: failure.message });
        parts.evict(pod.uid, failure);
      },
    },
    {
      ...options,
      kinds: [...(options.kinds ?? VOLUME_KINDS), ...disks.kinds, ...csi.kinds],
      families: disks.families,
    },
  );
  const attachable = {
    volumesInUse: allInUse([csi.volumesInUse, disks.volumesInUse], parts),
    nodeVolumes: (reported: NodeVolumes): void => {
      for (const one of [csi, disks]) one.nodeVolumes(reported);
    },
  };
  return { volumes, attachable, loops: [...csi.loops, ...disks.loops, ...(reportsHealth ? [health] : [])], spaces };
}

function watchHealth(spaces: DriverSpaces, store: VolumeParts["store"], signal: AbortSignal): Promise<void> {
  return spaces.watch(() => store.current.volumeStatsAggPeriod, signal);
}

/** The storage accounts with the writable layers as the runtime counts them. */
export function composeStorage(parts: StorageParts, options: StorageOptions, signal: AbortSignal): StorageAccounts {
  const layers = async (uid: string | undefined, call: Abortable): Promise<readonly LayerUsage[]> => {
    const found = await parts.runtime.writableLayers(
      uid === undefined ? {} : { labels: { [POD_UID_LABEL]: uid } },
      call,
    );
    return found.map(({ id, name, labels, bytes, inodes, at }) => {
      const pod = labels[POD_UID_LABEL] ?? "";
      const known = parts.observer?.get(pod)?.containers.find((container) => container.id === id);
      return { uid: pod, container: name, isTerminated: known?.state === "exited", bytes, inodes, at };
    });
  };
  const pathOf: StorageDeps["pathOf"] = (pod, volume) => parts.volumes.place(pod, volume);
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
