import { type DecodedManifest, podKey, sourceObjectKey } from "./decode.ts";
import type { SourceObject, SourcePod } from "./snapshot.ts";

/** The content of a manifest. */
export interface ManifestContent {
  readonly pods: readonly SourcePod[];
  readonly objects: readonly SourceObject[];
}

/**
 * Merges a partly invalid manifest with its last valid content: what is valid now, and what was valid before and is not
 * named now. A mistake in one document must not stop the pods of another, and never a running one.
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
