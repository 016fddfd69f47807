import { AbortedError } from "../../lib/abort.ts";
import type { Lane } from "../../lib/lane.ts";

/**
 * A pod's slot in the start lane. It is held from the sandbox to the last start of one run, so that pods come up one
 * after the other instead of all by halves; it is released while something slow (a pull, a hook) goes on.
 */
export class StartSlot {
  private leave: (() => void) | undefined;

  constructor(
    private readonly lane: Lane,
    private readonly options: { critical: boolean },
  ) {}

  get isHeld(): boolean {
    return this.leave !== undefined;
  }

  /** Resolves once the pod may start things; at once if it holds the slot already. */
  async hold(signal: AbortSignal, onPosition?: (position: number) => void): Promise<void> {
    if (this.leave !== undefined) return;
    await new Promise<void>((entered, refused) => {
      const work = (): Promise<void> =>
        new Promise<void>((done) => {
          this.leave = done;
          entered();
        });
      const lane = { signal, critical: this.options.critical, ...(onPosition === undefined ? {} : { onPosition }) };
      this.lane.run(work, lane).catch((error: unknown) => refused(error instanceof Error ? error : new AbortedError()));
    });
  }

  /** Lets the next pod enter the lane. Safe to repeat. */
  release(): void {
    const leave = this.leave;
    this.leave = undefined;
    leave?.();
  }
}
