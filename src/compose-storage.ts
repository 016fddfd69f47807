import type { RuntimePort } from "./adapters/cri/port.ts";
import type { Abortable } from "./lib/abort.ts";
import type { Pod } from "./model/generated/types.ts";
import { POD_UID_LABEL } from "./model/labels.ts";
import type { PodStorage } from "./model/pod-storage.ts";
import { type LayerUsage, StorageAccounts, type StorageDeps, type StorageOptions } from "./volumes/index.ts";

/** A person waits no longer for what a pod keeps on disk; what is not measured by then is said to be. */
const PATIENCE_MS = 1000;

export interface StorageParts extends Omit<StorageDeps, "layers"> {
  readonly runtime: Pick<RuntimePort, "writableLayers">;
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
