import { fieldValue } from "../model/downward-api.ts";
import type { DownwardAPIVolumeFile, KeyToPath, Pod } from "../model/generated/types.ts";
import type { ObjectEntries } from "../model/object-data.ts";
import { resourceFieldValue } from "../model/resource-field.ts";
import { volumePathProblem } from "../model/volume-path.ts";
import type { VolumeFile } from "./kind.ts";

/** Files of a volume by their path in it. */
export type Payload = ReadonlyMap<string, VolumeFile>;

/** Rejects paths that are none, and a file where another needs a directory. */
export function checkedPayload(entries: Iterable<readonly [string, VolumeFile]>): Payload {
  const payload = new Map(entries);
  for (const path of payload.keys()) {
    const problem = volumePathProblem(path);
    if (problem !== undefined) throw new Error(`path ${JSON.stringify(path.slice(0, 300))} ${problem}`);
    for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1)) {
      const above = path.slice(0, at);
      if (payload.has(above)) throw new Error(`"${above}" is a file and "${path}" needs it to be a directory`);
    }
  }
  return payload;
}

/** The words with which Kubernetes names the two kinds of objects. */
export type ObjectWord = "secret" | "config";

/** The files of a ConfigMap or Secret: all its keys, or only `items`. An optional key that is missing is left out. */
export function objectFiles(
  entries: ObjectEntries,
  source: { items?: readonly KeyToPath[]; optional?: boolean; defaultMode: number },
  word: ObjectWord,
): readonly (readonly [string, VolumeFile])[] {
  const { items, optional, defaultMode } = source;
  if (items === undefined || items.length === 0) {
    return [...entries].map(([key, bytes]) => [key, { bytes, mode: defaultMode }] as const);
  }
  return items.flatMap(({ key, path, mode }) => {
    const bytes = entries.get(key);
    if (bytes !== undefined) return [[path, { bytes, mode: mode ?? defaultMode }] as const];
    if (optional === true) return [];
    throw new Error(`references non-existent ${word} key: ${key}`);
  });
}

/** The files of a downward API volume. */
export function downwardFiles(
  items: readonly DownwardAPIVolumeFile[],
  facts: { pod: Pod; allocatable: Readonly<Record<string, string>>; defaultMode: number },
): readonly (readonly [string, VolumeFile])[] {
  return items.map(({ path, fieldRef, resourceFieldRef, mode }) => {
    const bytes = Buffer.from(downwardValue({ fieldRef, resourceFieldRef }, facts));
    return [path, { bytes, mode: mode ?? facts.defaultMode }];
  });
}

function downwardValue(
  { fieldRef, resourceFieldRef }: Pick<DownwardAPIVolumeFile, "fieldRef" | "resourceFieldRef">,
  { pod, allocatable }: { pod: Pod; allocatable: Readonly<Record<string, string>> },
): string {
  if (fieldRef !== undefined) return fieldValue(fieldRef.fieldPath, pod, { podIps: [], hostIps: [] });
  if (resourceFieldRef !== undefined) return resourceFieldValue(pod, resourceFieldRef, { allocatable });
  return "";
}
