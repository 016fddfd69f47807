import type { Abortable } from "../lib/abort.ts";
import type { ConfigMap, Pod, Secret } from "../model/generated/types.ts";

/** A pod as a source wants it: complete, valid, with remarks about what was ignored. */
export interface SourcePod {
  readonly pod: Pod;
  readonly warnings: readonly string[];
}

/** A ConfigMap or Secret that stands beside the pods. */
export type SourceObject =
  | { readonly kind: "ConfigMap"; readonly object: ConfigMap }
  | { readonly kind: "Secret"; readonly object: Secret };

/** All pods and objects of one source; one that is missing is no longer there. */
export interface Snapshot {
  readonly source: "file" | "http" | "api";
  readonly pods: readonly SourcePod[];
  readonly objects: readonly SourceObject[];
  /** Something could not be read or used: the source may want more pods than it names. */
  readonly isIncomplete: boolean;
}

/** Something that keeps a manifest from being used. The last good pods stay. */
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

/** A manifest over this many bytes is refused unread, as in Kubernetes. */
export const MOST_MANIFEST_BYTES = 10 * 1024 * 1024;
