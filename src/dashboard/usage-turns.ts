import type { Abortable } from "../lib/abort.ts";
import type { NodeUsageReport } from "../model/node-usage.ts";
import type { PageDeps } from "./page-deps.ts";

/** Usage is read this often at most, in milliseconds, and the less often the longer a sample takes. */
const SOONEST_MS = 2000;
const LATEST_MS = 15_000;
/** The share of the time that sampling for the page may take: one part of so many. */
const SHARE = 75;

/** When usage is read again for a stream, so that sampling costs a bounded share of a core. */
export class UsageTurns {
  private dueAt = Number.NEGATIVE_INFINITY;

  /** Without access to usage there is nothing to read, and a turn now and then. */
  constructor(
    private readonly deps: Pick<PageDeps, "clock" | "usage">,
    private readonly options: { readonly isShown: boolean },
  ) {}

  /** Milliseconds until the next turn. */
  waitMs(): number {
    return Math.max(0, this.dueAt - this.deps.clock.now().mono);
  }

  /** The usage of now if it is its turn; undefined if it is not, or not shown. */
  async next(abortable: Abortable): Promise<NodeUsageReport | undefined> {
    if (this.waitMs() > 0) return undefined;
    const { clock, usage } = this.deps;
    const began = clock.now().mono;
    const report = this.options.isShown
      ? await usage(abortable).catch((error: unknown) => {
          if (abortable.signal.aborted) return undefined;
          throw error;
        })
      : undefined;
    const now = clock.now().mono;
    const least = this.options.isShown ? SOONEST_MS : LATEST_MS;
    this.dueAt = now + Math.min(LATEST_MS, Math.max(least, (now - began) * SHARE));
    return report;
  }
}
