import { type DecodedManifest, podKey } from "./decode.ts";
import type { SourcePod } from "./snapshot.ts";

/**
 * The pods of a manifest of which parts are broken: what is good now, and of what was good before all that is not
 * named now. A mistake in one document must not stop the pods of another, and never one that runs.
 */
export function withLastGood(decoded: DecodedManifest, before: readonly SourcePod[]): readonly SourcePod[] {
  if (decoded.problems.length === 0) return decoded.pods;
  const named = new Set(decoded.pods.map(({ pod }) => podKey(pod)));
  return [...decoded.pods, ...before.filter(({ pod }) => !named.has(podKey(pod)))];
}
