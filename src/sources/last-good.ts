import { type DecodedManifest, podKey, sourceObjectKey } from "./decode.ts";
import type { SourceObject, SourcePod } from "./snapshot.ts";

/** What a manifest holds. */
export interface ManifestContent {
  readonly pods: readonly SourcePod[];
  readonly objects: readonly SourceObject[];
}

/**
 * The content of a manifest of which parts are broken: what is good now, and of what was good before all that is not
 * named now. A mistake in one document must not stop the pods of another, and never one that runs.
 */
export function withLastGood(decoded: DecodedManifest, before: ManifestContent | undefined): ManifestContent {
  const { pods, objects } = decoded;
  if (decoded.problems.length === 0 || before === undefined) return { pods, objects };
  const podNames = new Set(pods.map(({ pod }) => podKey(pod)));
  const objectNames = new Set(objects.map(sourceObjectKey));
  return {
    pods: [...pods, ...before.pods.filter(({ pod }) => !podNames.has(podKey(pod)))],
    objects: [...objects, ...before.objects.filter((object) => !objectNames.has(sourceObjectKey(object)))],
  };
}
