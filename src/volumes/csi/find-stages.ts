import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { Stage, VolumeHost, VolumeKind, VolumeMetadata } from "../kind.ts";
import { FILES_BESIDE, stageBelow } from "../layout.ts";
import type { VolumePaths } from "../paths.ts";
import type { UnnamedStage } from "../volumes-in-use.ts";
import type { BlockPaths } from "./block-paths.ts";
import { parseUniqueName, stageDirectory, stagePath } from "./volume.ts";

export interface StageSearch {
  readonly kinds: readonly VolumeKind[];
  readonly paths: VolumePaths;
  readonly block: BlockPaths;
}

export interface StageSearchDeps {
  readonly host: VolumeHost;
  readonly log: Logger;
  /** Called for each volume of a pod. */
  reconstructed(hasFailed: boolean): void;
}

export interface FoundStages {
  /** With what their metadata, or that of a pod that uses them, says. */
  readonly stages: readonly Stage[];
  readonly unnamed: readonly UnnamedStage[];
}

/**
 * Lists what an earlier agent left staged, from disk alone. A stage without legible metadata is named by the pods that use
 * it. Where those are damaged too it is unnamed: its directory is named after its volume's handle, and if that is a block
 * volume it may be any volume that no other stage uses. Rejects if directories cannot be listed.
 */
export async function findStages(search: StageSearch, deps: StageSearchDeps): Promise<FoundStages> {
  const stages: Stage[] = [];
  const unnamed = new Map<string, UnnamedStage>();
  for (const kind of search.kinds) {
    await findOwn(kind, { search, deps, stages, unnamed });
    // References of pods, too: the metadata of a stage may be damaged while it is mounted.
    await findUsed(kind, { search, deps, stages });
  }
  for (const { directory } of stages) unnamed.delete(directory);
  for (const directory of unnamed.keys())
    deps.log.warn("Found staged volume without metadata: what it may be is reported as in use", { directory });
  return { stages, unnamed: [...unnamed.values()] };
}

interface Finding {
  readonly search: StageSearch;
  readonly deps: StageSearchDeps;
  readonly stages: Stage[];
}

async function findOwn(
  { staging }: VolumeKind,
  { search, deps, stages, unnamed }: Finding & { readonly unnamed: Map<string, UnnamedStage> },
): Promise<void> {
  if (staging === undefined) return;
  const { readStage } = staging.layout ?? FILES_BESIDE;
  for (const name of await staging.list(search.paths.plugins, deps.host)) {
    const directory = `${search.paths.plugins}/${name}`;
    const metadata = await legible(readStage(directory, deps.host), deps);
    if (metadata !== undefined && metadata !== "illegible") stages.push({ directory, metadata });
    // Without metadata nothing was staged yet, or nothing is any more; unless something is mounted there all the same.
    else if (metadata === "illegible" || (await isMounted(directory, search, deps.host)))
      unnamed.set(directory, unnamedStage(directory, search));
  }
}

async function findUsed(kind: VolumeKind, { search, deps, stages }: Finding): Promise<void> {
  const { paths } = search;
  const { staging } = kind;
  if (staging === undefined) return;
  const { readReference } = staging.layout ?? FILES_BESIDE;
  for (const uid of await deps.host.list(paths.pods)) {
    for (const directory of await listed(uid, kind, { search, deps })) {
      const read = async (): Promise<VolumeMetadata | undefined> => {
        const metadata = await readReference(directory, deps.host);
        const below = metadata && stageBelow(staging, metadata);
        if (metadata !== undefined && below !== undefined && isNamed(metadata))
          stages.push({ directory: `${paths.plugins}/${below}`, metadata });
        return metadata;
      };
      const metadata = await legible(read(), deps);
      deps.reconstructed(metadata === undefined || metadata === "illegible");
    }
  }
}

/** Of a pod whose volumes cannot be listed none: the stages that it uses are known by their own metadata or mounts. */
async function listed(
  uid: string,
  kind: VolumeKind,
  { search, deps }: Pick<Finding, "search" | "deps">,
): Promise<readonly string[]> {
  try {
    return await search.paths.list(uid, kind, deps.host);
  } catch (error) {
    deps.log.warn("Failed to list volumes of a pod", { podUID: uid, error: messageOf(error) });
    deps.reconstructed(true);
    return [];
  }
}

/** Undefined if there is none. One that is damaged or cannot be read must not keep all other volumes from being mounted. */
async function legible(
  read: Promise<VolumeMetadata | undefined>,
  { log }: StageSearchDeps,
): Promise<VolumeMetadata | "illegible" | undefined> {
  try {
    const metadata = await read;
    return metadata === undefined || isNamed(metadata) ? metadata : "illegible";
  } catch (error) {
    log.warn("Failed to read volume metadata", { error: messageOf(error) });
    return "illegible";
  }
}

function isNamed({ driverName = "", volumeHandle = "" }: VolumeMetadata): boolean {
  return driverName !== "" && volumeHandle !== "";
}

async function isMounted(directory: string, { block }: StageSearch, host: VolumeHost): Promise<boolean> {
  const places = block.has(directory) ? block.places(directory) : [stagePath(directory)];
  const mounts = await Promise.all(places.map((place) => host.mountsBelow(place)));
  return mounts.flat().length > 0;
}

function unnamedStage(stage: string, { paths, block }: StageSearch): UnnamedStage {
  if (block.has(stage))
    return { stage, mayUse: (name, { isNamed }) => !isNamed && parseUniqueName(name) !== undefined };
  return {
    stage,
    mayUse: (name) => {
      const volume = parseUniqueName(name);
      return volume !== undefined && `${paths.plugins}/${stageDirectory(volume)}` === stage;
    },
  };
}
