import type { Abortable } from "../../lib/abort.ts";
import { orAborted } from "../../lib/or-aborted.ts";

/**
 * Calls to drivers, one at a time for a volume. A call goes on to its end if its caller gives up: a driver may not have
 * heard of that, and the next call about the volume, such as the one that undoes it, must not meet it.
 */
export class VolumeCalls {
  /** Resolves when the calls about a volume so far have ended. Never rejects. */
  private readonly tails = new Map<string, Promise<void>>();

  constructor(
    /** Aborts when the agent stops; only that cuts a call. */
    private readonly signal: AbortSignal,
  ) {}

  /** Makes the call in its turn. Rejects at an abort of the caller's signal; a call that did not begin is not made then. */
  run<T>(volume: string, call: (options: Abortable) => Promise<T>, { signal }: Abortable): Promise<T> {
    const before = this.tails.get(volume) ?? Promise.resolve();
    const done = before.then(() => {
      signal.throwIfAborted();
      return call({ signal: this.signal });
    });
    const tail = done.then(
      () => undefined,
      () => undefined,
    );
    this.tails.set(volume, tail);
    void tail.then(() => {
      if (this.tails.get(volume) === tail) this.tails.delete(volume);
    });
    return orAborted(done, signal);
  }

  /** Volumes with a call in flight or in its turn. */
  get size(): number {
    return this.tails.size;
  }
}
