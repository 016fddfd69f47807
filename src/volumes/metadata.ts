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
  const text = `${JSON.stringify(metadata)}\n`;
  if ((await host.readFile(`${directory}/${FILE}`)) !== text) await host.replaceFile(`${directory}/${FILE}`, text);
}

/** Undefined if there is none; rejects with a `MetadataError` if it cannot be understood. */
export async function readMetadata(directory: string, host: MetadataHost): Promise<VolumeMetadata | undefined> {
  const path = `${directory}/${FILE}`;
  const text = await host.readFile(path);
  return text === undefined ? undefined : parseMetadata(text, path);
}

/** Removes the metadata, and what a write that was interrupted left beside it. */
export async function removeMetadata(directory: string, host: MetadataHost): Promise<void> {
  const isTemporary = (name: string): boolean => name.startsWith(`.${FILE}.`) && name.endsWith(".tmp");
  const names = (await host.list(directory)).filter((name) => name === FILE || isTemporary(name));
  for (const name of names) await host.removeFile(`${directory}/${name}`);
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
