import type { Clock, Timer } from "../../lib/clock.ts";

/** A shorter wait is not worth a status, in milliseconds. */
const FIRST_MS = 2000;
/** A queue moves on with each pull; its length is shown at most this often, in milliseconds. */
const NEXT_MS = 10_000;

/**
 * Shows in the status of a pod what the pull of an image waits for. Every status is a request to the API server, so that
 * neither short waits nor each step of a queue are shown.
 */
export class PullWaits {
  private current: { readonly container: string; text: string; timer: Timer; isShown: boolean } | undefined;

  constructor(
    private readonly deps: {
      readonly clock: Clock;
      readonly report: { startWaits(container: string, message: string | undefined): void };
    },
  ) {}

  /** Takes what the pull waits for; undefined if it waits no longer. One pull of a pod at a time. */
  waits(container: string, text: string | undefined): void {
    const known = this.current;
    if (text !== undefined && known?.container === container) {
      known.text = text;
      return;
    }
    known?.timer.cancel();
    this.current = undefined;
    if (known?.isShown === true) this.deps.report.startWaits(known.container, undefined);
    if (text === undefined) return;
    const timer = this.deps.clock.after(FIRST_MS, () => this.show());
    this.current = { container, text, timer, isShown: false };
  }

  private show(): void {
    const { current } = this;
    if (current === undefined) return;
    current.isShown = true;
    current.timer = this.deps.clock.after(NEXT_MS, () => this.show());
    this.deps.report.startWaits(current.container, current.text);
  }
}
