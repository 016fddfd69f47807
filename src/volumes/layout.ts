import type { VolumeHost, VolumeLayout, VolumeMetadata, VolumeStaging } from "./kind.ts";
import { MetadataError, readMetadata, removeMetadata, writeMetadata } from "./metadata.ts";

/** `vol_data.json` beside the mount of the pod and beside that of the stage. */
export const FILES_BESIDE: VolumeLayout = {
  place: "volumes",
  readReference: readMetadata,
  readStage: readMetadata,
  writeReference: write,
  writeStage: write,
  removeReference: remove,
  removeStage: remove,
};

/**
 * Where a volume is staged, relative to `ROOT/plugins`; undefined if it is only set up for its pod. Throws a
 * `MetadataError` for a place outside: metadata is read from a disk, and what it names is unmounted and removed. Pure.
 */
export function stageBelow(staging: Pick<VolumeStaging, "directory">, metadata: VolumeMetadata): string | undefined {
  const below = staging.directory(metadata);
  const isPlace = below?.split("/").every((part) => !["", ".", ".."].includes(part) && !part.includes("\0")) ?? true;
  if (!isPlace) throw new MetadataError(`volume metadata names no place of a stage: ${JSON.stringify(below)}`);
  return below;
}

async function write(directory: string, metadata: VolumeMetadata, host: VolumeHost): Promise<void> {
  await host.makeDir(directory, 0o750);
  await writeMetadata(directory, metadata, host);
}

async function remove(directory: string, host: VolumeHost): Promise<void> {
  await removeMetadata(directory, host);
  await host.removeDir(directory);
}
