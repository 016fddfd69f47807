import { createHash } from "node:crypto";
import { canonicalJson } from "./canonical-json.ts";
import { fnv1a128 } from "./fnv.ts";
import type { ObjectMeta, Pod } from "./generated/types.ts";
import { CONFIG_HASH_ANNOTATION, CONFIG_MIRROR_ANNOTATION, CONFIG_SOURCE_ANNOTATION } from "./labels.ts";
import { defaultPod } from "./pod-defaults.ts";
import { dumpPod } from "./pod-dump.ts";

/** Where a static pod comes from: `location` is the file's path or the URL. */
export interface StaticPodOrigin {
  readonly source: "file" | "http";
  readonly location: string;
  readonly nodeName: string;
}

/** A manifest as it was read: whole, and without the fields that this version does not know. */
export interface PodManifest {
  readonly content: Pod;
  readonly known: Pod;
}

/**
 * Returns the UID of a static pod: 32 hex digits that change with the content, the node and the place, and with nothing
 * else. It is the one that Kubernetes computes, so that a static pod keeps running when one kubelet takes over from
 * another. A manifest that cannot be hashed that way (it has fields of a later version, times or odd quantities) has a
 * UID of its own kind.
 */
export function staticPodUid({ content, known }: PodManifest, origin: StaticPodOrigin): string {
  const { source, location, nodeName } = origin;
  const defaulted = defaultPod(content);
  const isKnown = canonicalJson(content) === canonicalJson(known);
  const dump = isKnown ? dumpPod(defaulted, known) : undefined;
  if (dump === undefined) return ownUid(defaulted, origin);
  const place = source === "file" ? `host:${nodeName}file:${location}` : `url:${location}`;
  return fnv1a128(new TextEncoder().encode(`${dump}${place}`));
}

function ownUid(content: Pod, { source, location, nodeName }: StaticPodOrigin): string {
  const place = `${source === "file" ? "file" : "url"}:${location}`;
  // Each part with its length, so that no two different triples make one text.
  const parts = [canonicalJson(content), `host:${nodeName}`, place];
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:${part}`);
  return hash.digest("hex").slice(0, 32);
}

/** Makes a static pod of a defaulted manifest that has a name: suffix, namespace, node, annotations, phase. */
export function toStaticPod(pod: Pod, uid: string, { source, nodeName }: StaticPodOrigin): Pod {
  const { metadata, spec } = pod;
  const finalUid = metadata.uid || uid;
  const tolerations = spec.tolerations ?? [];
  return {
    ...pod,
    metadata: {
      ...withoutLifecycle(metadata),
      name: `${metadata.name}-${nodeName.toLowerCase()}`,
      namespace: metadata.namespace || "default",
      uid: finalUid,
      annotations: {
        ...withoutMirror(metadata.annotations),
        [CONFIG_HASH_ANNOTATION]: finalUid,
        [CONFIG_SOURCE_ANNOTATION]: source,
      },
    },
    spec: {
      ...spec,
      nodeName,
      ...(source === "file" && { tolerations: [...tolerations, { operator: "Exists", effect: "NoExecute" }] }),
    },
    status: { phase: "Pending" },
  };
}

/** A manifest cannot request deletion: removing its file does. */
function withoutLifecycle(metadata: ObjectMeta): ObjectMeta {
  const { deletionTimestamp: _at, deletionGracePeriodSeconds: _grace, managedFields: _managed, ...rest } = metadata;
  return rest;
}

/** Only the API server's copy of a static pod is a mirror. */
function withoutMirror(annotations: ObjectMeta["annotations"]): Record<string, string> {
  const { [CONFIG_MIRROR_ANNOTATION]: _mirror, ...rest } = annotations ?? {};
  return rest;
}
