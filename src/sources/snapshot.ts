import type { Abortable } from "../lib/abort.ts";
import type { Pod } from "../model/generated/types.ts";

/** A pod as a source wants it: complete, valid, with remarks about what was ignored. */
export interface SourcePod {
  readonly pod: Pod;
  readonly warnings: readonly string[];
}

/** All pods of one source; a pod that is missing is no longer wanted. */
export interface Snapshot {
  readonly source: "file" | "http";
  readonly pods: readonly SourcePod[];
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
