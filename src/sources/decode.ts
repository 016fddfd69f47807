import { messageOf } from "../lib/errors.ts";
import { apiReferences } from "../model/api-references.ts";
import type { Pod } from "../model/generated/types.ts";
import { defaultPod } from "../model/pod-defaults.ts";
import { formatProblem } from "../model/problem.ts";
import { checkObject } from "../model/schema-check.ts";
import { normalizeObject, pruneObject } from "../model/schema-walk.ts";
import { type StaticPodOrigin, staticPodUid, toStaticPod } from "../model/static-pod.ts";
import { validatePod } from "../model/validate-pod.ts";
import { decodeObject } from "./decode-object.ts";
import { flattenDocuments } from "./documents.ts";
import type { DocumentParser, SourceObject, SourcePod } from "./snapshot.ts";

/** A problem of a manifest; `line` (from 1) is where its document or its mistake begins. */
export interface ManifestProblem {
  readonly line?: number;
  readonly message: string;
}

/** The valid pods and objects of a manifest, and the problems of the others. */
export interface DecodedManifest {
  readonly pods: readonly SourcePod[];
  readonly objects: readonly SourceObject[];
  readonly problems: readonly ManifestProblem[];
}

export interface DecodeOptions {
  readonly parse: DocumentParser;
  readonly signal: AbortSignal;
  /** With an API server manifests contain only pods, and these may not refer to objects. */
  readonly hasApiServer?: boolean;
}

/**
 * Decodes a manifest: JSON or YAML, one or several documents, each a Pod, a ConfigMap, a Secret or a list of them. Never
 * throws for invalid text; rejects only if the signal aborts.
 */
export async function decodeManifest(
  text: string,
  origin: StaticPodOrigin,
  { parse, signal, hasApiServer = false }: DecodeOptions,
): Promise<DecodedManifest> {
  let parsed: Awaited<ReturnType<DocumentParser>>;
  try {
    parsed = await parse(text, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    return { pods: [], objects: [], problems: [{ ...lineOf(error), message: messageOf(error) }] };
  }
  const documents = flattenDocuments(parsed.documents, hasApiServer ? ["Pod"] : ["Pod", "ConfigMap", "Secret"]);
  const pods: SourcePod[] = [];
  const objects: SourceObject[] = [];
  const names = new Set<string>();
  const found: ManifestProblem[] = [...documents.problems];
  for (const { value, line } of documents.objects) {
    const result = decodeObject(value) ?? decodePod(value, origin, { hasApiServer });
    if ("problems" in result) {
      found.push(...result.problems.map((message) => ({ line, message })));
      continue;
    }
    const name = "pod" in result ? `pod ${podKey(result.pod)}` : sourceObjectKey(result);
    if (names.has(name)) {
      found.push({ line, message: `${name} is named twice in this manifest; rename or remove one of them` });
      continue;
    }
    names.add(name);
    if ("pod" in result) pods.push({ pod: result.pod, warnings: [...parsed.warnings, ...result.warnings] });
    else objects.push(result);
  }
  return { pods, objects, problems: found };
}

/** `ConfigMap NAMESPACE/NAME`, which must be unique. */
export function sourceObjectKey({ kind, object }: SourceObject): string {
  return `${kind} ${object.metadata.namespace ?? ""}/${object.metadata.name ?? ""}`;
}

/** `NAMESPACE/NAME`, which must be unique among static pods. */
export function podKey(pod: Pod): string {
  return `${pod.metadata.namespace ?? ""}/${pod.metadata.name ?? ""}`;
}

type PodResult = SourcePod | { readonly problems: readonly string[] };

function decodePod(value: unknown, origin: StaticPodOrigin, options: { hasApiServer: boolean }): PodResult {
  const { errors, warnings } = checkObject("Pod", value);
  if (errors.length > 0) return { problems: errors.map(formatProblem) };
  const content = withParts(normalizeObject("Pod", value));
  if (!content.metadata.name) return { problems: ["invalid pod: name is needed for the pod; set metadata.name"] };
  // The UID also covers unknown fields, so that a later version that supports them restarts nothing.
  const known = withParts(pruneObject("Pod", content));
  const pod = toStaticPod(defaultPod(known), staticPodUid({ content, known }, origin), origin);
  const references = apiReferences(pod, options).map(
    (kind) => `static pods may not reference ${kind}; remove the reference`,
  );
  const problems = [...validatePod(pod).map(formatProblem), ...references];
  return problems.length > 0 ? { problems } : { pod, warnings: warnings.map(formatProblem) };
}

function withParts(value: unknown): Pod {
  // `checkObject` has found every field of a Pod to be of its type; only whole parts may be missing.
  const pod = value as Partial<Pod>;
  return { ...pod, metadata: pod.metadata ?? {}, spec: pod.spec ?? { containers: [] } };
}

function lineOf(error: unknown): { line?: number } {
  if (error instanceof Error && "line" in error && typeof error.line === "number") return { line: error.line };
  return {};
}
