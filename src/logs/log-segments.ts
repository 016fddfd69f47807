import type { LogFile, LogFiles } from "./files.ts";
import { rotatedLogs } from "./rotation/plan-rotation.ts";

/** Bytes by which a file is recognised after it was compressed: they hold the time of its first line. */
const START_BYTES = 64;

/** A rotated file of a log. */
interface Segment {
  readonly path: string;
  /** In order of time; the same before and after compression. */
  readonly key: string;
}

/** An open file of a log, with what tells its successor. */
export interface OpenSegment {
  readonly file: LogFile;
  readonly name: string;
  /** Its own key if it was rotated when it was opened; else undefined. */
  readonly key: string | undefined;
  /** The newest key when it was opened as the current file. */
  readonly after: string;
}

/**
 * The files of one log in order of time: rotated ones, plain or compressed, then the current one. Files are renamed,
 * compressed and removed while they are read; an open one stays readable.
 */
export class LogSegments {
  private readonly directory: string;
  private readonly base: string;

  constructor(
    private readonly files: LogFiles,
    private readonly path: string,
  ) {
    const slash = path.lastIndexOf("/");
    this.directory = path.slice(0, slash);
    this.base = path.slice(slash + 1);
  }

  /** Opens the current file; undefined if there is none. */
  async openCurrent(): Promise<OpenSegment | undefined> {
    for (;;) {
      const after = (await this.list()).at(-1)?.key ?? "";
      const file = await this.files.open(this.path);
      // A rotation in between: what was opened may be the file before or after it.
      if (((await this.list()).at(-1)?.key ?? "") === after)
        return file && { file, name: this.base, key: undefined, after };
      await file?.close();
    }
  }

  /** Opens the newest rotated file, for a log whose current one is missing. */
  openNewest(): Promise<OpenSegment | undefined> {
    return this.openNewestOf(() => true);
  }

  /** Opens the newest rotated file that is older than this one; undefined if there is none. */
  async openBefore(segment: OpenSegment): Promise<OpenSegment | undefined> {
    return this.openNewestOf(({ key }) => isBefore(key, segment));
  }

  /** Opens the file that was begun after this one; undefined while the current one is not there. */
  async openAfter(segment: OpenSegment): Promise<OpenSegment | undefined> {
    const own = segment.key ?? (await this.keyOfRotated(segment));
    for (const one of (await this.list()).filter(({ key }) => key > own)) {
      const found = await this.open(one);
      if (found !== undefined) return found;
    }
    return this.openCurrent();
  }

  /** True if another file has the name of the current one, or none has. */
  async isRotated({ key, file }: OpenSegment): Promise<boolean> {
    return key !== undefined || (await this.files.identity(this.path)) !== file.identity;
  }

  /** Wall-clock milliseconds of the last write to the newest rotated file before this one. */
  async modifiedBefore(segment: OpenSegment): Promise<number | undefined> {
    const newest = (await this.list()).findLast(({ key }) => isBefore(key, segment));
    return newest && this.files.modifiedAt(newest.path);
  }

  /** True for a file that the runtime may still write to: the current one, or the one that was rotated last. */
  async mayGrow({ key }: OpenSegment): Promise<boolean> {
    return key === undefined || (await this.list()).at(-1)?.key === key;
  }

  private async openNewestOf(isWanted: (segment: Segment) => boolean): Promise<OpenSegment | undefined> {
    for (const one of (await this.list()).filter(isWanted).reverse()) {
      const found = await this.open(one);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /**
   * The key under which the file was rotated since it was opened. One that was compressed meanwhile is recognised by its
   * first bytes; one that was removed has the key of what came before it.
   */
  private async keyOfRotated({ file, after }: OpenSegment): Promise<string> {
    const newer = (await this.list()).filter(({ key }) => key > after);
    for (const { path, key } of newer) if ((await this.files.identity(path)) === file.identity) return key;
    const start = await startOf(file);
    for (const { path, key } of newer.filter((segment) => segment.path.endsWith(".gz"))) {
      const other = await this.files.open(path);
      if (other === undefined) continue;
      const isSame = start.length > 0 && start.equals(await startOf(other).catch(() => Buffer.alloc(0)));
      await other.close();
      if (isSame) return key;
    }
    return after;
  }

  private async open({ path, key }: Segment): Promise<OpenSegment | undefined> {
    const file = (await this.files.open(path)) ?? (await this.files.open(`${path}.gz`));
    return file && { file, name: path.slice(path.lastIndexOf("/") + 1), key, after: key };
  }

  /** Oldest first; of a file that is there plain and compressed, the plain one. */
  private async list(): Promise<Segment[]> {
    const rotated = rotatedLogs(this.base, await this.files.names(this.directory));
    const byKey = new Map<string, Segment>();
    for (const { name, key, isCompressed } of rotated) {
      if (!isCompressed || !byKey.has(key)) byKey.set(key, { path: `${this.directory}/${name}`, key });
    }
    return [...byKey.values()];
  }
}

function isBefore(key: string, segment: OpenSegment): boolean {
  return segment.key === undefined ? key <= segment.after : key < segment.key;
}

async function startOf(file: LogFile): Promise<Buffer> {
  const buffer = Buffer.alloc(START_BYTES);
  return buffer.subarray(0, await file.read(buffer, 0));
}
