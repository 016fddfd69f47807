import { dirname } from "node:path";
import { type ConfigDocument, DynamicStore } from "../../config/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { parseDocuments } from "../../lib/yaml.ts";
import { configStoreFiles } from "./config-store-files.ts";

/** The store of dynamic configurations in a directory of this machine. */
export function openStore(directory: string, clock: Clock): DynamicStore {
  const parse = async (text: string, { signal }: Abortable): Promise<unknown> =>
    (await parseDocuments(text, { clock, signal })).documents[0]?.value;
  return new DynamicStore({ files: configStoreFiles, parse }, directory);
}

/** Parses configurations, with the lines of their keys. */
export function documentParser(clock: Clock) {
  return async (text: string, file: string, { signal }: Abortable): Promise<ConfigDocument> => {
    const { documents, warnings } = await parseDocuments(text, { clock, signal, lines: true });
    const [first] = documents;
    if (first === undefined) throw new Error("is empty");
    const { value, line, lines } = first;
    return { file, directory: dirname(file), value, line, lines, warnings };
  };
}
