import type { RuntimePort } from "../adapters/runtime/port.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Pod } from "../model/generated/types.ts";
import { POD_UID_LABEL } from "../model/labels.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import { type LayerUsage, StorageAccounts, type StorageDeps, type StorageOptions } from "./storage-accounts.ts";

/** Time limit of measuring the storage of one pod for a user; what is not measured by then is marked so. */
const EXPLAIN_LIMIT_MS = 1000;

export interface StorageParts extends Omit<StorageDeps, "layers"> {
  readonly runtime: Pick<RuntimePort, "writableLayers">;
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
  return new StorageAccounts({ ...parts, layers }, options, signal);
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
