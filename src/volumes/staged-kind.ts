import { basename } from "node:path";
import {
  MOUNT_OPERATIONS,
  type OperationNames,
  type Stage,
  type VolumeKind,
  type VolumeLayout,
  type VolumeMetadata,
  type VolumeOfPod,
  type VolumeStaging,
} from "./kind.ts";
import { FILES_BESIDE } from "./layout.ts";

/** A kind that is mounted once a node. */
export type StagedKind = VolumeKind & { readonly staging: VolumeStaging };

/** `kubernetes.io/csi:DRIVER`, or the plugin alone. */
export function pluginOf({ plugin, staging }: StagedKind, metadata: VolumeMetadata): string {
  const driver = staging.driverOf?.(metadata) ?? "";
  return driver === "" ? plugin : `${plugin}:${driver}`;
}

/** What is set up one after the other: all of a stage, and those of which only one may be. */
export function turnOf({ plugin, staging }: StagedKind, of: VolumeOfPod, stage: Stage | undefined): string {
  if (stage !== undefined) return stage.directory;
  return staging.isExclusive?.(of) === true ? `${plugin} ${basename(of.directory)}` : of.directory;
}

export function operationsOf({ operations = MOUNT_OPERATIONS }: StagedKind): OperationNames {
  return operations;
}

export function layoutOf({ staging }: StagedKind): VolumeLayout {
  return staging.layout ?? FILES_BESIDE;
}
