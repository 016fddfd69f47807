import type { RuntimePort } from "../adapters/runtime/port.ts";
import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";

/** Time limit of the call to the runtime. */
const LIMIT_MS = 1000;
/** How long a runtime that did not answer, or named none, is not asked again. */
const RETRY_MS = 60_000;

/** The image of sandboxes, which a runtime names once for all of them. */
export class SandboxImage {
  /** Empty until it is known, and where the runtime does not tell. */
  name = "";
  private askedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly deps: { readonly runtime: Pick<RuntimePort, "sandboxImage">; readonly clock: Clock }) {}

  /** Asks the runtime unless it is known; rejects only for an abort. */
  async find({ signal }: Abortable): Promise<void> {
    const { clock, runtime } = this.deps;
    if (this.name !== "" || clock.now().mono - this.askedAt < RETRY_MS) return;
    this.askedAt = clock.now().mono;
    try {
      const call = (limited: AbortSignal) => runtime.sandboxImage({ signal: limited });
      this.name = (await withScope([signal], { clock, ms: LIMIT_MS }, call)) ?? "";
    } catch {
      signal.throwIfAborted();
    }
  }
}
