import { type Abortable, AbortScope, isAborted } from "../../lib/abort.ts";
import type { Clock, Timer } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { ObjectSource } from "../../model/object-source.ts";
import type { CsiDrivers, CsiNodeReport } from "./driver.ts";

/** Between two questions for lack of room, in milliseconds. */
const EXHAUSTED_MS = 10_000;

export interface AllocatableDeps {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly objects: ObjectSource;
  readonly drivers: CsiDrivers;
  /** Undefined without an API server. */
  readonly report?: Pick<CsiNodeReport, "update"> | undefined;
}

/** The updates of one driver. */
interface Followed {
  readonly scope: AbortScope;
  periodMs: number;
  timer: Timer | undefined;
}

/**
 * Keeps the number of volumes that the CSINode says a driver can attach up to date: once a period that the driver's
 * CSIDriver object asks for, and when a volume could not be attached for lack of room.
 */
export class AllocatableUpdates {
  private readonly followed = new Map<string, Followed>();
  /** When a driver was asked for lack of room, by monotonic time. */
  private readonly askedAt = new Map<string, number>();

  constructor(
    private readonly deps: AllocatableDeps,
    private readonly signal: AbortSignal,
  ) {
    deps.drivers.onChange(() => this.sync(), { signal });
  }

  /** A volume found no room. Each pod that waits reports that every few seconds. */
  exhausted(name: string): void {
    const now = this.deps.clock.now().mono;
    const last = this.askedAt.get(name);
    if (last !== undefined && now - last < EXHAUSTED_MS) return;
    this.askedAt.set(name, now);
    void this.update(name, { signal: this.signal });
  }

  /** Asks the driver now; failures are logged. */
  async update(name: string, { signal }: Abortable): Promise<void> {
    const { drivers, report, log } = this.deps;
    try {
      const info = await drivers.get(name).service.info({ signal });
      await report?.update({ name, ...info }, { signal });
    } catch (error) {
      if (!isAborted(error, signal)) log.warn("Failed to update CSI driver", { driver: name, error: messageOf(error) });
    }
  }

  private sync(): void {
    const names = new Set(this.deps.drivers.names);
    for (const [name, { scope, timer }] of this.followed) {
      if (names.has(name)) continue;
      timer?.cancel();
      scope.abort();
      scope.dispose();
      this.followed.delete(name);
    }
    for (const name of names) if (!this.followed.has(name)) this.follow(name);
  }

  private follow(name: string): void {
    if (this.deps.report === undefined) return;
    const one: Followed = { scope: new AbortScope([this.signal]), periodMs: 0, timer: undefined };
    this.followed.set(name, one);
    const look = (): void => void this.look(name, one);
    this.deps.objects.onChange({ kind: "CSIDriver", namespace: "", name }, look, one.scope);
    look();
  }

  /** Reads the period; another one counts from now. */
  private async look(name: string, one: Followed): Promise<void> {
    const { signal } = one.scope;
    try {
      const object = await this.deps.objects.get({ kind: "CSIDriver", namespace: "", name }, { signal });
      const periodMs = (object?.spec.nodeAllocatableUpdatePeriodSeconds ?? 0) * 1000;
      if (periodMs === one.periodMs || signal.aborted) return;
      one.periodMs = periodMs;
      this.plan(name, one);
    } catch (error) {
      // The watch of these objects comes back by itself, and tells.
      if (!isAborted(error, signal)) {
        this.deps.log.warn("Failed to read CSIDriver", { driver: name, error: messageOf(error) });
      }
    }
  }

  private plan(name: string, one: Followed): void {
    one.timer?.cancel();
    const { signal } = one.scope;
    if (one.periodMs <= 0 || signal.aborted) return;
    one.timer = this.deps.clock.after(one.periodMs, () => {
      void this.update(name, { signal }).then(() => this.plan(name, one));
    });
  }
}
