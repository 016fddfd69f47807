import { type Abortable, AbortScope, withScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import { CriProbe } from "./cri-probe.ts";
import type { Layout } from "./layout.ts";
import { killShims, ShimAudit } from "./orphaned-shims.ts";
import { sandboxOf } from "./processes.ts";

/**
 * When orphaned shims are searched for, after a start of the agent or of containerd, in milliseconds since the time
 * before: a request of a killed agent may still be on its way out at first, and a sandbox without a task is removed first.
 */
const AUDITS_MS = [0, 5000, 10_000, 15_000, 45_000];
/** Timeout of the list of sandboxes, in milliseconds. */
const LIST_MS = 10_000;

interface ReaperDeps {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
}

/** Kills the shims that the embedded containerd lost track of, see `ShimAudit`. */
export class ShimReaper {
  private current: AbortScope | undefined;

  constructor(
    private readonly deps: ReaperDeps,
    private readonly layout: Layout,
  ) {}

  /** Searches for a while from now on. Call after each start of the agent or of containerd. */
  start(signal: AbortSignal): void {
    this.current?.abort();
    const scope = new AbortScope([signal]);
    this.current = scope;
    void this.run(scope.signal).finally(() => scope.dispose());
  }

  /** Never rejects; ends with the signal. */
  private async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    const audit = new ShimAudit(this.layout.socket);
    for (const ms of AUDITS_MS) {
      await clock.sleep(ms, { signal }).catch(() => undefined);
      const sandboxIds = await this.sandboxIds({ signal });
      if (signal.aborted) return;
      const orphaned = audit.find(sandboxIds);
      killShims(this.layout, orphaned);
      if (orphaned.length > 0) log.warn("Killed orphaned shims", { sandboxIDs: orphaned.map(sandboxOf) });
    }
  }

  /** The ids of all sandboxes; undefined if containerd does not answer. */
  private async sandboxIds({ signal }: Abortable): Promise<ReadonlySet<string> | undefined> {
    const probe = new CriProbe(this.layout.socket);
    try {
      const limit = { clock: this.deps.clock, ms: LIST_MS };
      return await withScope([signal], limit, (scoped) => probe.sandboxIds({ signal: scoped }));
    } catch {
      return undefined;
    } finally {
      probe.close();
    }
  }
}
