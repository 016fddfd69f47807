import type { ClaimDevice } from "../model/claim-device.ts";
import type { ClaimSize } from "./checkpoint.ts";
import { CheckpointRoom } from "./checkpoint-room.ts";
import { type ClaimRecord, claimKey } from "./claim-record.ts";

/** Where claims are kept. */
export interface ClaimFile {
  /** The claims of an earlier run; throws if they cannot be read. */
  load(): readonly ClaimRecord[];
  /** Writes all claims; they are given in a stable order. */
  save(claims: readonly ClaimRecord[]): Promise<void>;
}

/** The claims in use on this node: the one owner of these facts. Every change is persisted by `save`. */
export class ClaimStore {
  private readonly claims = new Map<string, ClaimRecord>();
  private readonly room = new CheckpointRoom();
  private saving: Promise<void> | undefined;
  private isDirty = false;
  private isLoaded = false;

  /** Loads the claims of an earlier run; if that fails, nothing is saved before it succeeds. */
  constructor(private readonly file: ClaimFile) {
    try {
      this.load();
    } catch {
      // The file has logged it; the next change tries again.
    }
  }

  /** Loads the claims of an earlier run, once. Throws as long as they cannot be read. */
  load(): void {
    if (this.isLoaded) return;
    for (const claim of this.file.load()) {
      const known = this.claims.get(claimKey(claim));
      const pods = new Set([...claim.pods, ...(known?.pods ?? [])]);
      if (known === undefined || known.uid === claim.uid) this.keep({ ...claim, ...known, pods });
    }
    this.isLoaded = true;
  }

  get(key: string): ClaimRecord | undefined {
    return this.claims.get(key);
  }

  list(): readonly ClaimRecord[] {
    return [...this.claims.values()];
  }

  /** The claims that a pod uses. */
  ofPod(uid: string): readonly ClaimRecord[] {
    return this.list().filter(({ pods }) => pods.has(uid));
  }

  isUsedBy(uid: string): boolean {
    for (const { pods } of this.claims.values()) if (pods.has(uid)) return true;
    return false;
  }

  /** Notes that a pod uses a claim. Throws if the checkpoint has no room for it. */
  use(claim: Omit<ClaimRecord, "pods" | "isPrepared">, podUid: string): ClaimRecord {
    const known = this.claims.get(claimKey(claim)) ?? { ...claim, pods: new Set<string>(), isPrepared: false };
    return this.take({ ...known, pods: new Set([...known.pods, podUid]) });
  }

  /** Notes that a pod no longer uses a claim; the claim stays. */
  leave(key: string, podUid: string): void {
    const known = this.claims.get(key);
    if (known !== undefined) this.set({ ...known, pods: new Set([...known.pods].filter((uid) => uid !== podUid)) });
  }

  /** Notes what the drivers prepared. Throws if the checkpoint has no room for it: the claim stays as it was. */
  prepared(key: string, drivers: ReadonlyMap<string, readonly ClaimDevice[]>): void {
    const known = this.claims.get(key);
    if (known !== undefined) this.take({ ...known, drivers, isPrepared: true });
  }

  delete(key: string): void {
    this.isDirty = this.claims.delete(key) || this.isDirty;
    this.room.delete(key);
  }

  /** Resolves once all changes before this call are on disk. Writes that wait are merged into one. */
  async save(): Promise<void> {
    while (this.isDirty || this.saving !== undefined) {
      this.saving ??= this.write().finally(() => {
        this.saving = undefined;
      });
      await this.saving;
    }
  }

  private async write(): Promise<void> {
    this.load();
    this.isDirty = false;
    try {
      await this.file.save(this.list());
    } catch (error) {
      this.isDirty = true;
      throw error;
    }
  }

  /** As `set`, if there is room for the claim. */
  private take(claim: ClaimRecord): ClaimRecord {
    return this.set(claim, this.room.check(claim));
  }

  private set(claim: ClaimRecord, size?: ClaimSize): ClaimRecord {
    this.keep(claim, size);
    this.isDirty = true;
    return claim;
  }

  private keep(claim: ClaimRecord, size?: ClaimSize): void {
    this.claims.set(claimKey(claim), claim);
    this.room.set(claim, size);
  }
}
