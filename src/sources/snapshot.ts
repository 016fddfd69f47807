import type { Abortable } from "../lib/abort.ts";
import type { ConfigMap, Pod, Secret } from "../model/generated/types.ts";

/** A desired pod of a source: complete and valid, with warnings about ignored fields. */
export interface SourcePod {
  readonly pod: Pod;
  readonly warnings: readonly string[];
}

/** A ConfigMap or Secret of a manifest. */
export type SourceObject =
  | { readonly kind: "ConfigMap"; readonly object: ConfigMap }
  | { readonly kind: "Secret"; readonly object: Secret };

/** All pods and objects of one source; missing ones are deleted. */
export interface Snapshot {
  readonly source: "file" | "http" | "api";
  readonly pods: readonly SourcePod[];
  readonly objects: readonly SourceObject[];
  /** Something could not be read or used: the source may desire more pods than it lists. */
  readonly isIncomplete: boolean;
}

/** A problem that makes a manifest unusable. Its last valid pods stay. */
export interface SourceProblem {
  /** Path or URL of the manifest. */
  readonly file: string;
  readonly line?: number;
  readonly message: string;
}

/** Parses text into documents; see lib/yaml.ts. */
export type DocumentParser = (
  text: string,
  options: Abortable,
) => Promise<{ documents: readonly { value: unknown; line: number }[]; warnings: readonly string[] }>;

/** Maximum size of a manifest in bytes, as in Kubernetes. */
export const MOST_MANIFEST_BYTES = 10 * 1024 * 1024;
