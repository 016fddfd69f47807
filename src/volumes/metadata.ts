import { HostError } from "../adapters/host/host-error.ts";
import type { VolumeHost, VolumeMetadata } from "./kind.ts";

/** The name that Kubernetes gives to the file beside a mount. */
const FILE = "vol_data.json";

/** The file exists but does not hold metadata: it is not known what the volume was. */
export class MetadataError extends Error {
  override readonly name = "MetadataError";
}

type MetadataHost = Pick<VolumeHost, "readFile" | "replaceFile" | "removeFile" | "list">;

/** Persists the metadata in a directory that exists; does nothing if it is there already. */
export async function writeMetadata(directory: string, metadata: VolumeMetadata, host: MetadataHost): Promise<void> {
  const text = metadataText(metadata);
  const path = `${directory}/${FILE}`;
  const isThere = await readOrRefuse(path, host).then(
    (found) => found === text,
    // What is there instead of it, or cannot be read, is replaced.
    () => false,
  );
  if (!isThere) await host.replaceFile(path, text);
}

/** Undefined if there is none; rejects with a `MetadataError` if it cannot be understood. */
export async function readMetadata(directory: string, host: MetadataHost): Promise<VolumeMetadata | undefined> {
  const path = `${directory}/${FILE}`;
  const text = await readOrRefuse(path, host);
  return text === undefined ? undefined : parseMetadata(text, path);
}

/** Removes the metadata, and what a write that was interrupted left beside it. */
export async function removeMetadata(directory: string, host: MetadataHost): Promise<void> {
  const isTemporary = (name: string): boolean => name.startsWith(`.${FILE}.`) && name.endsWith(".tmp");
  const names = (await host.list(directory)).filter((name) => name === FILE || isTemporary(name));
  for (const name of names) await host.removeFile(`${directory}/${name}`);
}

/** The file as Kubernetes writes it, to the byte: keys in order, and what Go's encoder escapes. Pure. */
export function metadataText(metadata: VolumeMetadata): string {
  const sorted = Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1));
  const escaped = (found: string): string => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `${JSON.stringify(Object.fromEntries(sorted)).replaceAll(/[<>&\u2028\u2029]/g, escaped)}\n`;
}

/** Rejects with a `MetadataError` if there is something else in its place: a FIFO, a link, a directory, a huge file. */
export async function readOrRefuse(path: string, host: Pick<VolumeHost, "readFile">): Promise<string | undefined> {
  try {
    return await host.readFile(path);
  } catch (error) {
    if (error instanceof HostError && error.code === "InvalidArgument") throw new MetadataError(error.message);
    throw error;
  }
}

function parseMetadata(text: string, path: string): VolumeMetadata {
  try {
    const value: unknown = JSON.parse(text);
    if (isMetadata(value)) return value;
  } catch {
    // Told below, with the path.
  }
  throw new MetadataError(`read volume metadata ${path}: not a JSON object of strings`);
}

function isMetadata(value: unknown): value is VolumeMetadata {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((one) => typeof one === "string");
}
