export type { PathKind, TokenSource, TrustBundleSource, VolumeHost, VolumeNode, VolumeSource } from "./kind.ts";
export { type PrepareOptions, type ReconcilerDeps, VolumeReconciler } from "./reconciler.ts";
