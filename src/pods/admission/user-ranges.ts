import type { IdMapping } from "../../adapters/runtime/port.ts";
import { messageOf } from "../../lib/errors.ts";
import type { PodFiles } from "../pod-files.ts";
import type { UserPool } from "./user-pool.ts";

/** The first id that may be allocated: those below are the host's own. */
const FIRST_ID = 65_536;
const MOST_IDS = 2 ** 32;
const MOST_FILE_BYTES = 4096;

/** The whole record; both mappings are the same. */
const RECORD =
  /^\{"uidMappings":\[\{"hostId":(\d+),"containerId":0,"length":(\d+)\}\],"gidMappings":\[\{"hostId":\1,"containerId":0,"length":\2\}\]\}\s*$/;

/**
 * Allocates ranges of user and group ids to pods with a user namespace; no two overlap. Persisted in
 * `ROOT/pods/UID/userns`, from which they are loaded after a restart of the agent. While a record cannot be read, nothing
 * new is allocated: it might be of the same ids.
 */
export class UserRanges {
  private readonly taken = new Map<string, IdMapping>();
  /** Why the records of these pods cannot be read, or are not known to be written. */
  private readonly unreadable = new Map<string, string>();
  private readonly allocating = new Map<string, Promise<IdMapping>>();
  private known: Promise<void> | undefined;

  constructor(
    private readonly files: Pick<PodFiles, "list" | "readTail" | "replaceFile" | "removeFile">,
    private readonly options: { readonly rootDir: string; readonly pool?: UserPool | undefined; idsPerPod(): number },
  ) {}

  /** Returns the pod's range, allocated at the first call. Rejects if none is left, or it is not known which are. */
  async of(uid: string): Promise<IdMapping> {
    await this.load();
    const running = this.allocating.get(uid);
    if (running !== undefined) return running;
    const before = this.taken.get(uid);
    if (before !== undefined) return before;
    const allocation = this.allocate(uid).finally(() => this.allocating.delete(uid));
    this.allocating.set(uid, allocation);
    return allocation;
  }

  /** Frees the pod's range, also on disk. Safe to repeat, and for a pod that has none. */
  async release(uid: string): Promise<void> {
    const isLoaded = await this.known?.then(
      () => true,
      () => false,
    );
    await this.allocating.get(uid)?.catch(() => undefined);
    if (isLoaded !== true) await this.read(uid);
    const mapping = this.taken.get(uid);
    if (mapping === undefined && !this.unreadable.has(uid)) return;
    // The file first: a range that is given to another pod must not be found there again.
    await this.files.removeFile(this.fileOf(uid));
    this.unreadable.delete(uid);
    if (this.taken.get(uid) === mapping) this.taken.delete(uid);
  }

  private async allocate(uid: string): Promise<IdMapping> {
    for (const other of [...this.unreadable.keys()]) await this.read(other);
    for (const [other, why] of this.unreadable) {
      throw new Error(`allocate user namespace: record of pod ${other} is unreadable: ${why}`);
    }
    const found = this.taken.get(uid);
    if (found !== undefined) return found;
    const length = this.options.idsPerPod();
    const hostId = firstFree([...this.taken.values()], length, this.options.pool);
    const mapping = { hostId, containerId: 0, length };
    this.taken.set(uid, mapping);
    try {
      const text = `${JSON.stringify({ uidMappings: [mapping], gidMappings: [mapping] })}\n`;
      await this.files.replaceFile(this.fileOf(uid), text);
    } catch (error) {
      // Whether something was written is seen when the record is read, before the next allocation.
      this.taken.delete(uid);
      this.unreadable.set(uid, messageOf(error));
      throw error;
    }
    return mapping;
  }

  /** Loads the records once; after a failure the next call tries again. */
  private load(): Promise<void> {
    this.known ??= this.readAll().catch((error: unknown) => {
      this.known = undefined;
      throw error;
    });
    return this.known;
  }

  private async readAll(): Promise<void> {
    for (const uid of await this.files.list(`${this.options.rootDir}/pods`)) await this.read(uid);
  }

  private async read(uid: string): Promise<void> {
    const isAgain = this.unreadable.has(uid);
    try {
      const text = await this.files.readTail(this.fileOf(uid), MOST_FILE_BYTES);
      // Released or read meanwhile.
      if (isAgain && !this.unreadable.has(uid)) return;
      const numbers = RECORD.exec(text);
      if (numbers === null && text !== "") throw new Error("it is malformed");
      if (numbers !== null) {
        this.taken.set(uid, { hostId: Number(numbers[1]), containerId: 0, length: Number(numbers[2]) });
      }
      this.unreadable.delete(uid);
    } catch (error) {
      this.unreadable.set(uid, messageOf(error));
    }
  }

  private fileOf(uid: string): string {
    return `${this.options.rootDir}/pods/${uid}/userns`;
  }
}

/** Returns the start of the lowest free range of this length. Pure. */
export function firstFree(
  taken: readonly Omit<IdMapping, "containerId">[],
  length: number,
  pool: UserPool = { first: FIRST_ID, length: MOST_IDS - FIRST_ID },
): number {
  for (let id = Math.ceil(pool.first / length) * length; id + length <= pool.first + pool.length; id += length) {
    const isTaken = taken.some((other) => other.hostId < id + length && id < other.hostId + other.length);
    if (!isTaken) return id;
  }
  throw new Error("allocate user namespace: no range of user ids is left");
}
