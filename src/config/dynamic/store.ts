import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { ConfigurationError } from "../configuration-error.ts";
import { type ConfigSource, decodePointer, encodePointer, isBaseName, sourceId } from "./source.ts";

/** The files of the store. */
export interface StoreFiles {
  /** The content, or undefined when there is no such file. */
  read(path: string): Promise<string | undefined>;
  /** Replaces the file as a whole, so that it survives a power cut; makes its directories. */
  write(path: string, content: string): Promise<void>;
  /** The names in a directory; none when it is not there. */
  list(path: string): Promise<readonly string[]>;
}

export interface StoreDeps {
  readonly files: StoreFiles;
  /** The first document of a YAML text. */
  parse(text: string, abortable: Abortable): Promise<unknown>;
}

/** A pointer as it was found. `damaged`: it is there but cannot be read. */
export type Pointer =
  | { readonly state: "none" }
  | { readonly state: "set"; readonly source: ConfigSource }
  | { readonly state: "damaged"; readonly why: string };

/** How the trial of a configuration goes; of one that is not assigned it means nothing. */
export interface TrialRecord {
  /** `sourceId` of the configuration. */
  readonly of: string;
  /** Starts under it that have not ended in good order. */
  readonly starts: number;
  /** Set once it was given up. */
  readonly failed?: string;
}

/** One configuration that was applied here. */
export interface HistoryEntry {
  readonly id: string;
  readonly name: string;
  /** When, as RFC 3339. */
  readonly at: string;
  readonly state: "trial" | "good" | "rolled back" | "replaced";
  readonly why?: string;
}

/** One version of one key of a ConfigMap. */
export type ConfigMapVersion = Pick<ConfigSource, "namespace" | "name" | "uid" | "resourceVersion" | "key">;

const MOST_HISTORY = 50;
/** The identity of all that comes from files of this machine; their versions count up. */
const FILE_UID = "file";
const FILE_KEY = "kubelet";

/**
 * The directory of `--dynamic-config-dir`. Every change is one replaced file, and the pointer to a checkpoint is written
 * after the checkpoint: whenever the agent dies, what is found is the state before or after. Checkpoints stay.
 *
 *   store/meta/assigned, last-known-good   pointers, empty for the local configuration
 *   store/meta/trial, history              ours: starts under the assigned one; what was applied
 *   store/checkpoints/UID/VERSION/KEY      the configurations
 *   checkpoints/.cur, .lkg, UID            the layout of v1.8 to v1.10, read where the later one has nothing
 */
export class DynamicStore {
  constructor(
    private readonly deps: StoreDeps,
    readonly directory: string,
  ) {}

  assigned(abortable: Abortable): Promise<Pointer> {
    return this.pointer("assigned", ".cur", abortable);
  }

  lastKnownGood(abortable: Abortable): Promise<Pointer> {
    return this.pointer("last-known-good", ".lkg", abortable);
  }

  async assign(source: ConfigSource | undefined): Promise<void> {
    await this.write("assigned", encodePointer(source));
  }

  async setLastKnownGood(source: ConfigSource | undefined): Promise<void> {
    await this.write("last-known-good", encodePointer(source));
  }

  /** Keeps a configuration of this machine and returns what points at it. */
  async keep(content: string, name: string): Promise<ConfigSource> {
    const versions = (await this.deps.files.list(this.path("checkpoints", FILE_UID))).map(Number);
    const latest = Math.max(0, ...versions.filter(Number.isSafeInteger));
    const source: ConfigSource = {
      kind: "file",
      namespace: "",
      name,
      uid: FILE_UID,
      resourceVersion: String(latest + 1),
      key: FILE_KEY,
      digest: digestOf(content),
    };
    await this.deps.files.write(this.checkpointPath(source), content);
    return source;
  }

  /** Keeps one version of a ConfigMap's configuration and returns what points at it. */
  async keepConfigMap(content: string, version: ConfigMapVersion): Promise<ConfigSource> {
    const { uid, resourceVersion, key } = version;
    const odd = [uid, resourceVersion, key].find((name) => !isBaseName(name));
    if (odd !== undefined) throw new ConfigurationError("Invalid", `"${odd}" is not a plain file name`);
    const source: ConfigSource = { kind: "configMap", ...version, digest: digestOf(content) };
    await this.deps.files.write(this.checkpointPath(source), content);
    return source;
  }

  /** The configuration that a pointer leads to; throws `Damaged` when it is not whole. */
  async checkpoint(source: ConfigSource): Promise<string> {
    const path = this.checkpointPath(source);
    const content = await this.deps.files.read(path).catch((error: unknown) => {
      throw new ConfigurationError("Damaged", `${path}: ${messageOf(error)}`, { cause: error });
    });
    if (content === undefined) throw new ConfigurationError("Damaged", `${path}: does not exist`);
    if (source.isOldLayout === true) return oldContent(content, path, source.key);
    if (source.digest !== undefined && source.digest !== digestOf(content)) {
      throw new ConfigurationError("Damaged", `${path}: checksum does not match`);
    }
    return content;
  }

  /** As it is shown in messages. */
  checkpointPath(source: ConfigSource): string {
    if (source.isOldLayout === true) return join(this.directory, "checkpoints", source.uid);
    return this.path("checkpoints", source.uid, source.resourceVersion, source.key);
  }

  /** The trial of this configuration; a fresh one when nothing readable is known. */
  async trial(source: ConfigSource): Promise<TrialRecord> {
    const found = await this.json("trial");
    const fresh = { of: sourceId(source), starts: 0 };
    if (typeof found !== "object" || found === null || !("of" in found) || found.of !== fresh.of) return fresh;
    const starts = "starts" in found && typeof found.starts === "number" ? found.starts : 0;
    const failed = "failed" in found && typeof found.failed === "string" ? { failed: found.failed } : {};
    return { ...fresh, starts, ...failed };
  }

  async setTrial(trial: TrialRecord): Promise<void> {
    await this.write("trial", `${JSON.stringify(trial)}\n`);
  }

  /** Oldest first. It is for people: a damaged one is an empty one. */
  async history(): Promise<readonly HistoryEntry[]> {
    const found = await this.json("history");
    return Array.isArray(found) ? found.filter(isHistoryEntry) : [];
  }

  /** Adds an entry, or replaces the one of the same id. */
  async remember(entry: HistoryEntry): Promise<void> {
    const before = (await this.history()).filter(({ id }) => id !== entry.id);
    const all = [...before, entry].slice(-MOST_HISTORY);
    await this.write("history", `${JSON.stringify(all, undefined, 1)}\n`);
  }

  private async pointer(name: string, oldName: string, { signal }: Abortable): Promise<Pointer> {
    const paths = [this.path("meta", name), join(this.directory, "checkpoints", oldName)];
    for (const path of paths) {
      try {
        const content = await this.deps.files.read(path);
        if (content === undefined) continue;
        if (content === "") return { state: "none" };
        return { state: "set", source: decodePointer(await this.deps.parse(content, { signal })) };
      } catch (error) {
        signal.throwIfAborted();
        return { state: "damaged", why: `${path}: ${messageOf(error)}` };
      }
    }
    return { state: "none" };
  }

  private async json(name: string): Promise<unknown> {
    try {
      return JSON.parse((await this.deps.files.read(this.path("meta", name))) ?? "null");
    } catch {
      return undefined;
    }
  }

  private async write(name: string, content: string): Promise<void> {
    await this.deps.files.write(this.path("meta", name), content);
  }

  private path(...parts: readonly string[]): string {
    return join(this.directory, "store", ...parts);
  }
}

function digestOf(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}

function isHistoryEntry(value: unknown): value is HistoryEntry {
  return typeof value === "object" && value !== null && "id" in value && "at" in value && "state" in value;
}

/** v1.8 to v1.10 kept the whole ConfigMap as JSON. */
function oldContent(content: string, path: string, key: string): string {
  let data: unknown;
  try {
    const map: unknown = JSON.parse(content);
    data = typeof map === "object" && map !== null && "data" in map ? map.data : undefined;
  } catch (error) {
    throw new ConfigurationError("Damaged", `${path}: ${messageOf(error)}`, { cause: error });
  }
  const found = isBaseName(key) && typeof data === "object" && data !== null ? Reflect.get(data, key) : undefined;
  if (typeof found !== "string") throw new ConfigurationError("Damaged", `${path}: has no data named ${key}`);
  return found;
}
