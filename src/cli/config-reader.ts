import { manifestFiles } from "../adapters/host/manifest-files.ts";
import type { ReadDeps } from "../config/index.ts";
import type { Clock } from "../lib/clock.ts";
import { parseDocuments } from "../lib/yaml.ts";

/** Reads configuration files of this machine. */
export function configReader({ clock }: { readonly clock: Clock }): ReadDeps {
  return {
    files: manifestFiles,
    parse: (text, { signal }) => parseDocuments(text, { clock, signal, lines: true }),
  };
}
