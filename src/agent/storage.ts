import { ProjectBook } from "../adapters/host/project-book.ts";
import { ProjectQuotas } from "../adapters/host/project-quotas.ts";
import { LinuxQuotaCalls } from "../adapters/host/quota-calls.ts";
import { SystemCalls } from "../adapters/host/system-calls.ts";
import type { RuntimePort } from "../adapters/runtime/port.ts";
import { isGateOn } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { POD_UID_LABEL } from "../model/labels.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import { type LayerUsage, StorageAccounts, type StorageDeps, type StorageOptions } from "../volumes/index.ts";

/** Kubernetes' gate for counting emptyDirs of pods with users of their own by quotas. */
const QUOTA_GATE = "LocalStorageCapacityIsolationFSQuotaMonitoring";

/** A person waits no longer for what a pod keeps on disk; what is not measured by then is said to be. */
const PATIENCE_MS = 1000;

export interface StorageParts extends Omit<StorageDeps, "layers"> {
  readonly runtime: Pick<RuntimePort, "writableLayers">;
}

/** Quotas of projects on this machine, used while the gate is on. */
export function composeQuotas(
  { clock, log }: { clock: Clock; log: Logger },
  store: { readonly current: { readonly featureGates: Readonly<Record<string, boolean>> } },
): ProjectQuotas {
  const lock = async (fd: number): Promise<void> => {
    const calls = await SystemCalls.load();
    if (calls === undefined) throw new Error("files cannot be locked without the C library");
    await calls.lock(fd);
  };
  return new ProjectQuotas({
    ...{ calls: () => LinuxQuotaCalls.load(), book: new ProjectBook({ clock, lock }), log },
    isOn: () => isGateOn(QUOTA_GATE, store.current.featureGates),
  });
}

/** What pods keep on the node, with the layers that the runtime counts. */
export function composeStorage(parts: StorageParts, options: StorageOptions, signal: AbortSignal): StorageAccounts {
  const layers = async (uid: string | undefined, call: Abortable): Promise<readonly LayerUsage[]> => {
    const found = await parts.runtime.writableLayers(
      uid === undefined ? {} : { labels: { [POD_UID_LABEL]: uid } },
      call,
    );
    return found.map(({ name, labels, bytes, inodes, at }) => ({
      ...{ uid: labels[POD_UID_LABEL] ?? "", container: name, bytes, inodes, at },
    }));
  };
  return new StorageAccounts({ ...parts, layers }, options, signal);
}

/** One pod's storage for `kubelet explain`. */
export function storageOf(
  accounts: StorageAccounts,
  pod: (uid: string) => Pod | undefined,
): (uid: string, options: Abortable) => Promise<PodStorage | undefined> {
  return async (uid, { signal }) => {
    const found = pod(uid);
    if (found === undefined) return undefined;
    return (await accounts.read([found], { signal, limitMs: PATIENCE_MS })).get(uid);
  };
}
