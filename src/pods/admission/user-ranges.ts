import type { IdMapping } from "../../adapters/runtime/port.ts";
import type { PodFiles } from "../pod-files.ts";
import type { UserPool } from "./user-pool.ts";

/** The first id that may be allocated: those below are the host's own. */
const FIRST_ID = 65_536;
const MOST_IDS = 2 ** 32;
const MOST_FILE_BYTES = 4096;

/**
 * Allocates ranges of user and group ids to pods with a user namespace; no two overlap. Persisted in
 * `ROOT/pods/UID/userns`, from which they are loaded after a restart of the agent.
 */
export class UserRanges {
  private readonly taken = new Map<string, IdMapping>();
  private known: Promise<void> | undefined;

  constructor(
    private readonly files: Pick<PodFiles, "list" | "readTail" | "writeFile" | "removeFile">,
    private readonly options: { readonly rootDir: string; readonly pool?: UserPool | undefined; idsPerPod(): number },
  ) {}

  /** Returns the pod's range, allocated at the first call. Rejects if none is left. */
  async of(uid: string): Promise<IdMapping> {
    this.known ??= this.load();
    await this.known;
    const before = this.taken.get(uid);
    if (before !== undefined) return before;
    const length = this.options.idsPerPod();
    const hostId = firstFree([...this.taken.values()], length, this.options.pool);
    const mapping = { hostId, containerId: 0, length };
    this.taken.set(uid, mapping);
    const text = `${JSON.stringify({ uidMappings: [mapping], gidMappings: [mapping] })}\n`;
    await this.files.writeFile(this.fileOf(uid), text, 0o600);
    return mapping;
  }

  /** Frees the pod's range, also on disk. Safe to repeat. */
  async release(uid: string): Promise<void> {
    await this.known;
    const mapping = this.taken.get(uid);
    // The file first: a range that is given to another pod must not be found there again.
    await this.files.removeFile(this.fileOf(uid));
    if (this.taken.get(uid) === mapping) this.taken.delete(uid);
  }

  private async load(): Promise<void> {
    for (const uid of await this.files.list(`${this.options.rootDir}/pods`)) {
      const text = await this.files.readTail(this.fileOf(uid), MOST_FILE_BYTES);
      const numbers = /"hostId":(\d+),"containerId":0,"length":(\d+)/.exec(text);
      if (numbers === null) continue;
      this.taken.set(uid, { hostId: Number(numbers[1]), containerId: 0, length: Number(numbers[2]) });
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
