import { readEntries } from "../model/env-objects.ts";
import type { KeyToPath, Volume } from "../model/generated/types.ts";
import type { ObjectRef } from "../model/object-source.ts";
import { setUpContent, tearDownContent, type VolumeContent } from "./content-volume.ts";
import type { VolumeKind, VolumeOfPod } from "./kind.ts";
import { type ObjectWord, objectFiles } from "./payload.ts";

/** What tells a kind of volume that shows the keys of an object from the other. */
interface ObjectVolume {
  readonly plugin: string;
  readonly kind: "ConfigMap" | "Secret";
  readonly word: ObjectWord;
  /** Its files are never on disk. */
  readonly inMemory: boolean;
  /** What the volume asks for; undefined if it is of another kind. */
  sourceOf(volume: Volume): ObjectVolumeSource | undefined;
}

interface ObjectVolumeSource {
  readonly name?: string | undefined;
  readonly items?: readonly KeyToPath[] | undefined;
  readonly optional?: boolean | undefined;
  readonly defaultMode?: number | undefined;
}

/** The kind of volumes that show the keys of a ConfigMap or a Secret as files. */
export function objectKind({ plugin, kind, word, inMemory, sourceOf }: ObjectVolume): VolumeKind {
  const refOf = ({ pod, volume }: VolumeOfPod): ObjectRef<"ConfigMap" | "Secret"> => {
    return { kind, namespace: pod.metadata.namespace ?? "", name: sourceOf(volume)?.name ?? "" };
  };
  return {
    plugin,
    handles: (volume) => sourceOf(volume) !== undefined,
    isLive: true,
    isPlain: true,
    references: (of) => ({ objects: [refOf(of)] }),

    setUp(of, deps, options) {
      const content = async (): Promise<VolumeContent> => {
        const { name, items, optional = false, defaultMode = 0o644 } = sourceOf(of.volume) ?? {};
        const entries = await readEntries(deps.objects, refOf(of), options);
        if (entries === undefined && !optional) throw new Error(`${kind.toLowerCase()} "${name}" not found`);
        return { files: objectFiles(entries ?? new Map(), { ...(items && { items }), optional, defaultMode }, word) };
      };
      return setUpContent(of, deps, { content: content(), inMemory });
    },

    tearDown: tearDownContent,
  };
}
