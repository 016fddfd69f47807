import { AbortedError, AbortScope } from "../../lib/abort.ts";
import { type Acting, mustInterrupt, type WantedNow } from "../plan/interrupt.ts";

/** The one action that a worker performs, and its interruption once it is obsolete. */
export class RunningAction {
  private scope: AbortScope | undefined;
  private acting: Acting | undefined;

  constructor(private readonly wanted: () => WantedNow) {}

  /** Begins a step of the worker; the signal aborts with the given one, or when an action of the step is obsolete. */
  open(signal: AbortSignal): AbortSignal {
    this.scope = new AbortScope([signal]);
    return this.scope.signal;
  }

  /** Called when an action begins; throws if it became obsolete since it was planned. */
  begin(acting: Acting): void {
    this.acting = acting;
    this.check();
    this.scope?.signal.throwIfAborted();
  }

  /** Called when something that is wanted changed: aborts an obsolete action. */
  check(): void {
    if (this.acting === undefined || !mustInterrupt(this.wanted(), this.acting)) return;
    this.scope?.abort(new AbortedError("superseded"));
  }

  /** Ends the step. */
  close(): void {
    this.acting = undefined;
    this.scope?.dispose();
    this.scope = undefined;
  }
}
