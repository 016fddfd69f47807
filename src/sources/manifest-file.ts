import { createHash } from "node:crypto";
import type { Abortable } from "../lib/abort.ts";
import { errnoOf, messageOf } from "../lib/errors.ts";
import { decodeManifest, type ManifestProblem } from "./decode.ts";
import { type ManifestContent, withLastGood } from "./last-good.ts";
import { type DocumentParser, MOST_MANIFEST_BYTES } from "./snapshot.ts";

/** The kind of a path, links followed. */
export interface FileFacts {
  readonly kind: "file" | "directory" | "other";
  readonly size: number;
  /** Identity, size and modification time of the file. */
  readonly stamp: string;
}

/** The host's files, as the file source needs them. Errors carry their errno in `code`. */
export interface ManifestFiles {
  /** Undefined if it does not exist. */
  stat(path: string, options: Abortable): Promise<FileFacts | undefined>;
  /** Names in a directory, in any order. */
  list(path: string, options: Abortable): Promise<readonly string[]>;
  /** The text of a regular file; rejects if it exceeds `maxBytes`. Never blocks on a FIFO. */
  read(path: string, options: Abortable & { maxBytes: number }): Promise<string>;
}

/** The known state of one manifest file. Replaced, never modified. */
export interface ManifestState extends ManifestContent {
  readonly stamp: string;
  /** Hash of the text of the content; empty if it could not be read. */
  readonly digest: string;
  readonly problems: readonly ManifestProblem[];
}

export interface LoadRequest extends Abortable {
  readonly path: string;
  readonly nodeName: string;
  readonly hasApiServer?: boolean;
  readonly before: ManifestState | undefined;
  /** Reads the file even if its stamp is unchanged: modification times are coarse. */
  readonly force: boolean;
}

/** Number of immediate retries if a file changes while it is read; its next change event covers the rest. */
const MOST_READS = 3;

/**
 * Loads one manifest. Returns the previous state if nothing changed, undefined if the file does not exist, and otherwise
 * a new state, which keeps the last valid pods of a file that is invalid now.
 */
export async function loadManifest(
  deps: { readonly files: ManifestFiles; readonly parse: DocumentParser },
  request: LoadRequest,
): Promise<ManifestState | undefined> {
  const { path, before, signal } = request;
  try {
    for (let attempt = 1; ; attempt++) {
      const facts = await deps.files.stat(path, { signal });
      if (facts?.kind !== "file") return undefined;
      if (facts.stamp === before?.stamp && !request.force) return before;
      if (facts.size > MOST_MANIFEST_BYTES) {
        return broken(before, facts.stamp, `${facts.size} bytes are too large; a manifest has at most 10 MiB`);
      }
      const text = await deps.files.read(path, { signal, maxBytes: MOST_MANIFEST_BYTES });
      const after = await deps.files.stat(path, { signal });
      if (after?.stamp === facts.stamp) return await decode(deps.parse, request, { text, stamp: facts.stamp });
      // The empty stamp forces the next scan to read it again.
      if (attempt === MOST_READS) return broken(before, "", "the file changes while it is read");
    }
  } catch (error) {
    if (signal.aborted) throw error;
    if (errnoOf(error) === "ENOENT") return undefined;
    return broken(before, "", `cannot be read: ${messageOf(error)}`);
  }
}

async function decode(
  parse: DocumentParser,
  { path, nodeName, before, signal, hasApiServer = false }: LoadRequest,
  { text, stamp }: { text: string; stamp: string },
): Promise<ManifestState> {
  const digest = createHash("sha256").update(`${nodeName}\n${text}`).digest("hex");
  if (before !== undefined && before.digest === digest) return { ...before, stamp };
  const origin = { source: "file", location: path, nodeName } as const;
  const decoded = await decodeManifest(text, origin, { parse, signal, hasApiServer });
  return { stamp, digest, ...withLastGood(decoded, before), problems: decoded.problems };
}

function broken(before: ManifestState | undefined, stamp: string, message: string): ManifestState {
  return { stamp, digest: "", pods: before?.pods ?? [], objects: before?.objects ?? [], problems: [{ message }] };
}
