import { isFinal } from "./volume-error.ts";

/**
 * Which directories of volumes and stages certainly hold nothing: what never was there need not be undone. Only of those
 * that this agent began: an earlier one may have done anything.
 *
 *     found new ─► untouched ──begin──► (unknown) ──done──► (in use)
 *                      ▲                    │
 *                      └──failed for certain┘
 */
export class Attempts {
  /** Begun by this agent, and never done. */
  private readonly fresh = new Set<string>();
  private readonly untouched = new Set<string>();

  /** Nothing is in the directory yet. */
  isNew(directory: string): void {
    this.fresh.add(directory);
    this.untouched.add(directory);
  }

  /** Something is done in the directory from now on. */
  begin(directory: string): void {
    this.untouched.delete(directory);
  }

  done(directory: string): void {
    this.fresh.delete(directory);
  }

  /** The attempt failed; true if that leaves nothing in the directory. */
  failed(directory: string, error: unknown): boolean {
    if (!this.fresh.has(directory) || !isFinal(error)) return false;
    this.untouched.add(directory);
    return true;
  }

  isUntouched(directory: string): boolean {
    return this.untouched.has(directory);
  }

  /** The directory was removed. */
  removed(directory: string): void {
    this.fresh.delete(directory);
    this.untouched.delete(directory);
  }
}
