import { type Abortable, AbortScope, isAborted } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Live, LiveValue } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { Wakes } from "../../lib/wakes.ts";
import type { Pod } from "../../model/generated/types.ts";
import { requestedMs, type ShutdownGroup, type ShutdownPeriod, shutdownGroups } from "./plan.ts";
import type { ShutdownState } from "./state.ts";

/** The login manager of systemd; `adapters/dbus` has it. */
export interface ShutdownBus {
  inhibitDelayMs(options: Abortable): Promise<number>;
  isShuttingDown(options: Abortable): Promise<boolean>;
  inhibit(options: Abortable): Promise<{ release(): void }>;
  onShutdown(fn: (isActive: boolean) => void, options: Abortable): Promise<void>;
  raiseInhibitDelay(ms: number, options: Abortable): Promise<void>;
  /** Rejects once the connection is lost. */
  readonly closed: Promise<never>;
  close(): void;
}

/** The pods, as the shutdown needs them. */
export interface ShutdownPods {
  /** Pods that run or start. */
  active(): readonly Pod[];
  /** Ends the pod as failed; it may be repeated. */
  terminate(pod: Pod, graceSeconds: number): void;
  /** Resolves when nothing of the pods runs or is mounted any more. */
  stopped(pods: readonly Pod[], options: Abortable): Promise<void>;
}

export interface NodeShutdownDeps {
  connect(options: Abortable): Promise<ShutdownBus>;
  readonly pods: ShutdownPods;
  /** Resolves when the pods that ran before the agent was started are among them. */
  known?(options: Abortable): Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly state: { load(): ShutdownState | undefined; save(state: ShutdownState): Promise<void> };
  /** Changes with each start of the machine. */
  readonly bootId: string;
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
  /** True from the announcement of a shutdown until it is cancelled: no pod is admitted, and the node is not ready. */
  readonly status: LiveValue<boolean>;
  /** Called with the state of the last shutdown. */
  recorded?(state: ShutdownState): void;
}

/** How long the agent waits before it connects again, in milliseconds, as in Kubernetes. */
const RECONNECT_MS = 1000;
/** Waits for logind to take over a longer delay, in milliseconds. */
const RAISE_WAITS_MS = [100, 200, 400, 800, 1600];

/**
 * Ends the pods in order when the machine shuts down.
 *
 *   disabled ──times configured──► connecting ──lock held──► watching ──PrepareForShutdown(true)──► ending pods
 *      ▲                              ▲  │ failed: 1 s          ▲                                        │
 *      └──none──────── change ────────┴──┘                      └── PrepareForShutdown(false): new lock ◄┘ lock released
 */
export class NodeShutdown {
  private wasWarned = false;

  /** Begins as shutting down if an earlier agent of this boot did not get to the end: logind is asked once it answers. */
  constructor(
    private readonly deps: NodeShutdownDeps,
    private readonly periods: Live<readonly ShutdownPeriod[]>,
  ) {
    const state = deps.state.load();
    if (state === undefined) return;
    deps.recorded?.(state);
    // The wall clock may have jumped since: it does not tell whether the machine was restarted.
    if (state.bootId === deps.bootId && state.endedAt === undefined && periods.current.length > 0)
      deps.status.set(true);
  }

  /** Runs until the signal aborts. Without a login manager pods are not ended, which is one warning. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, clock, status } = this.deps;
    const wakes = new Wakes(clock);
    let scope = new AbortScope([signal]);
    this.periods.onChange(
      () => {
        wakes.wake();
        // A shutdown that goes on is finished with the times that it began with.
        if (!status.current) scope.abort();
      },
      { signal },
    );
    while (!signal.aborted) {
      wakes.clear();
      scope = new AbortScope([signal]);
      try {
        if (this.periods.current.length > 0) await this.session(scope.signal);
        else status.set(false);
      } catch (error) {
        if (!isAborted(error, scope.signal)) {
          if (!this.wasWarned)
            log.warn("Failed to watch for node shutdown, pods are not ended in order", { error: messageOf(error) });
          this.wasWarned = true;
        }
      } finally {
        scope.dispose();
      }
      await wakes.sleep(this.periods.current.length > 0 ? RECONNECT_MS : undefined, signal);
    }
  }

  /** One connection to the login manager; ends with it. */
  private async session(signal: AbortSignal): Promise<void> {
    const bus = await this.deps.connect({ signal });
    try {
      await this.raiseDelay(bus, signal);
      const lock = new HeldLock(bus);
      try {
        await this.takeFirst(bus, lock, signal);
        await this.watch(bus, lock, signal);
      } finally {
        lock.release();
      }
    } finally {
      bus.close();
    }
  }

  /** Logind refuses the lock while a shutdown waits for others: an agent that starts then still ends its pods. */
  private async takeFirst(bus: ShutdownBus, lock: HeldLock, signal: AbortSignal): Promise<void> {
    try {
      await lock.take({ signal });
    } catch (error) {
      if (signal.aborted || !(await bus.isShuttingDown({ signal }))) throw error;
    }
  }

  /** Follows announcements until the connection is lost or the signal aborts. */
  private async watch(bus: ShutdownBus, lock: HeldLock, signal: AbortSignal): Promise<void> {
    const { deps } = this;
    const wakes = new Wakes(deps.clock);
    const seen: { announced?: boolean | undefined; failure?: unknown } = {};
    bus.closed.catch((error: unknown) => {
      seen.failure = error;
      wakes.wake();
    });
    const take = (isActive: boolean): void => {
      seen.announced = isActive;
      wakes.wake();
    };
    await bus.onShutdown(take, { signal });
    // One that was announced before this connection.
    if (seen.announced === undefined && (await bus.isShuttingDown({ signal }))) take(true);
    if (seen.announced !== true) deps.status.set(false);
    this.wasWarned = false;
    while (!signal.aborted && seen.failure === undefined) {
      wakes.clear();
      const { announced } = seen;
      seen.announced = undefined;
      if (announced === true) {
        await this.process(signal);
        lock.release();
      } else if (announced === false) {
        deps.event("Normal", "Shutdown", "Shutdown manager detected shutdown cancellation");
        deps.status.set(false);
        await lock.take({ signal });
      }
      await wakes.sleep(undefined, signal);
    }
    if (!signal.aborted) throw seen.failure;
  }

  /** Has logind wait for as long as the pods may take. */
  private async raiseDelay(bus: ShutdownBus, signal: AbortSignal): Promise<void> {
    const wanted = requestedMs(this.periods.current);
    let delay = await bus.inhibitDelayMs({ signal });
    if (delay >= wanted) return;
    await bus.raiseInhibitDelay(wanted, { signal });
    // It reads its configuration later.
    for (const waitMs of RAISE_WAITS_MS) {
      delay = await bus.inhibitDelayMs({ signal });
      if (delay >= wanted) return;
      await this.deps.clock.sleep(waitMs, { signal });
    }
    throw new Error(`raise InhibitDelayMaxSec of logind to ${wanted / 1000} s: it stays at ${delay / 1000} s`);
  }

  private async process(signal: AbortSignal): Promise<void> {
    const { deps } = this;
    const { bootId } = deps;
    const startedAt = deps.clock.now().wall;
    deps.log.info("Node is shutting down, ending pods");
    deps.event("Normal", "Shutdown", "Shutdown manager detected shutdown event");
    deps.status.set(true);
    await this.save({ bootId, startedAt });
    await deps.known?.({ signal });
    for (const group of shutdownGroups(this.periods.current, deps.pods.active())) await this.endGroup(group, signal);
    await this.save({ bootId, startedAt, endedAt: deps.clock.now().wall });
    deps.log.info("Ended pods, node shuts down");
  }

  /** Resolves when the pods have stopped, or their time is up. */
  private async endGroup({ priority, seconds, pods }: ShutdownGroup, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    log.info("Ending pods for node shutdown", { priority, seconds, pods: pods.length });
    for (const { pod, graceSeconds } of pods) this.deps.pods.terminate(pod, graceSeconds);
    const scope = new AbortScope([signal]);
    const timer = clock.after(seconds * 1000, () => scope.abort());
    try {
      await this.deps.pods.stopped(
        pods.map(({ pod }) => pod),
        scope,
      );
    } catch (error) {
      if (!isAborted(error, scope.signal) || signal.aborted) throw error;
      log.warn("Pods did not stop in time for node shutdown", { priority, seconds });
    } finally {
      timer.cancel();
      scope.dispose();
    }
  }

  private async save(state: ShutdownState): Promise<void> {
    this.deps.recorded?.(state);
    await this.deps.state.save(state).catch((error: unknown) => {
      this.deps.log.warn("Failed to save state of node shutdown", { error: messageOf(error) });
    });
  }
}

/** The lock of a connection; taking another one releases the one before it. */
class HeldLock {
  private held: { release(): void } | undefined;

  constructor(private readonly bus: Pick<ShutdownBus, "inhibit">) {}

  async take(options: Abortable): Promise<void> {
    const taken = await this.bus.inhibit(options);
    this.release();
    this.held = taken;
  }

  release(): void {
    this.held?.release();
    this.held = undefined;
  }
}
