export { composeStorage, composeVolumes, storageOf } from "./compose.ts";
export type {
  TokenSource,
  TrustBundleSource,
  VolumeHost,
  VolumeKind,
  VolumeNode,
  VolumeSource,
} from "./kind.ts";
export { type MeteredEmptyDir, meteredEmptyDirs } from "./local-storage.ts";
export { type ReconcilerDeps, type ReconcilerOptions, VolumeReconciler } from "./reconciler.ts";
export {
  type LayerUsage,
  type ReadOptions,
  StorageAccounts,
  type StorageDeps,
  type StorageOptions,
} from "./storage-accounts.ts";
export { type MeasuredUsage, type MeteredDirectory, type UsageHost, UsageMeter } from "./usage-meter.ts";
