import { join } from "node:path";
import { manyListeners } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Logger } from "../../lib/log.ts";
import {
  decodeIntent,
  decodeRecord,
  encodeIntent,
  encodeRecord,
  isRecordFile,
  type PulledRecord,
  recordFileName,
} from "./record-format.ts";

/** The files of the records; `pullRecordFiles` of the host in the agent. */
export interface PullRecordFiles {
  names(directory: string): Promise<readonly string[]>;
  read(path: string): Promise<string | undefined>;
  write(path: string, text: string): Promise<void>;
  remove(path: string): Promise<void>;
}

export interface RecordStoreDeps {
  readonly files: PullRecordFiles;
  readonly log: Logger;
  /** Called with the number of files after each change. */
  counted?(kind: "intents" | "records", count: number): void;
}

/** Writes in progress are finished also when the agent stops. */
const always = { signal: manyListeners().signal };

/** Intents to pull an image and records of pulled images, in the files of Kubernetes below `image_manager`. */
export class RecordStore {
  private readonly directories: { readonly intents: string; readonly records: string };
  /** Names of all files, once they are loaded: what is not among them is not looked for on disk. */
  private readonly names = { intents: new Set<string>(), records: new Set<string>() };
  private readonly isLoaded = { intents: false, records: false };
  private readonly turns = new KeyedMutex();

  constructor(
    private readonly deps: RecordStoreDeps,
    rootDir: string,
  ) {
    const base = join(rootDir, "image_manager");
    this.directories = { intents: join(base, "pulling"), records: join(base, "pulled") };
  }

  /** Returns all valid intents and records, and rewrites those of an earlier version. Damaged ones are left alone. */
  async load(): Promise<{ readonly intents: readonly string[]; readonly records: readonly PulledRecord[] }> {
    const intents = await this.loadAll("intents", decodeIntent, encodeIntent);
    const records = await this.loadAll("records", decodeRecord, encodeRecord);
    return { intents, records };
  }

  /** True if there is an intent to pull the image. Rejects if it cannot be read. */
  async hasIntent(image: string): Promise<boolean> {
    const text = await this.read("intents", image);
    return text !== undefined && decodeIntent(text).value === image;
  }

  async writeIntent(image: string): Promise<void> {
    await this.deps.files.write(this.path("intents", image), encodeIntent(image));
    this.count("intents", image, true);
  }

  async removeIntent(image: string): Promise<void> {
    await this.deps.files.remove(this.path("intents", image));
    this.count("intents", image, false);
  }

  /** Returns the record of an image, undefined if there is none. Rejects if it is damaged. */
  async record(imageRef: string): Promise<PulledRecord | undefined> {
    const text = await this.read("records", imageRef);
    if (text === undefined) return undefined;
    const { value } = decodeRecord(text);
    return value.imageRef === imageRef ? value : undefined;
  }

  /** Replaces the record by what `change` returns, one change after the other; the same record is not written. */
  update(imageRef: string, change: (record: PulledRecord | undefined) => PulledRecord): Promise<void> {
    const work = async (): Promise<void> => {
      const known = await this.record(imageRef).catch((error: unknown) => {
        this.deps.log.warn("Replaced damaged image pulled record", { imageRef, error: messageOf(error) });
        return undefined;
      });
      const changed = change(known);
      if (changed === known) return;
      await this.deps.files.write(this.path("records", imageRef), encodeRecord(changed));
      this.count("records", imageRef, true);
    };
    return this.turns.run(imageRef, work, always);
  }

  /** Returns all valid records as they are now. */
  async listRecords(): Promise<readonly PulledRecord[]> {
    const found: PulledRecord[] = [];
    // Not by a list of the directory: that removes temporary files, also those of a record that is being written.
    for (const name of [...this.names.records]) {
      try {
        const text = await this.deps.files.read(join(this.directories.records, name));
        if (text !== undefined) found.push(decodeRecord(text).value);
      } catch {
        // Reported when it was loaded or is used; whose it is cannot be told.
      }
    }
    return found;
  }

  /** Removes a record, unless `isObsolete` says otherwise once it is its turn. */
  removeRecord(imageRef: string, isObsolete: () => boolean = () => true): Promise<void> {
    const work = async (): Promise<void> => {
      if (!isObsolete()) return;
      await this.deps.files.remove(this.path("records", imageRef));
      this.count("records", imageRef, false);
    };
    return this.turns.run(imageRef, work, always);
  }

  private async loadAll<T>(
    kind: "intents" | "records",
    decode: (text: string) => { readonly value: T; readonly isOld: boolean },
    encode: (value: T) => string,
  ): Promise<readonly T[]> {
    const { files, log } = this.deps;
    const found: T[] = [];
    const directory = this.directories[kind];
    for (const name of (await files.names(directory)).filter(isRecordFile)) {
      const path = join(directory, name);
      // Also one that cannot be read is there: the image must not count as one that the agent did not pull.
      this.names[kind].add(name);
      try {
        const text = await files.read(path);
        if (text === undefined) {
          this.names[kind].delete(name);
          continue;
        }
        const { value, isOld } = decode(text);
        if (isOld) await files.write(path, encode(value));
        found.push(value);
      } catch (error) {
        log.warn("Failed to load image pull record", { path, error: messageOf(error) });
      }
    }
    this.isLoaded[kind] = true;
    this.deps.counted?.(kind, this.names[kind].size);
    return found;
  }

  private async read(kind: "intents" | "records", image: string): Promise<string | undefined> {
    if (this.isLoaded[kind] && !this.names[kind].has(recordFileName(image))) return undefined;
    return this.deps.files.read(this.path(kind, image));
  }

  private path(kind: "intents" | "records", image: string): string {
    return join(this.directories[kind], recordFileName(image));
  }

  private count(kind: "intents" | "records", image: string, isThere: boolean): void {
    const names = this.names[kind];
    if (isThere) names.add(recordFileName(image));
    else names.delete(recordFileName(image));
    this.deps.counted?.(kind, names.size);
  }
}
