import type { Clock } from "../../lib/clock.ts";
import type { GrpcChannel } from "../grpc/channel.ts";
import type { ContainerEvent, EventSink } from "./event-source.ts";
import { ContainerState } from "./generated/cri.ts";
import { runtimeService } from "./methods.ts";
import type { TaskStates } from "./task-states.ts";

/** How long the CRI plug-in may lag behind containerd's events before the event is passed on all the same. */
const MAX_LAG_MS = 500;
const MAX_STEP_MS = 8;
const STATUS_LIMIT_MS = 1000;

/** An event of containerd's own service. */
export interface TaskEvent extends ContainerEvent {
  /** The task of an exited container was deleted: the CRI plug-in is about to know the exit as well. */
  readonly isSettled?: boolean;
}

/**
 * Holds `started` back until the call that started it is answered, or a status call reports the same (a few
 * milliseconds), and a settled `stopped` until the status of the CRI plug-in says so; with them later events of the same
 * container, so that a reader of the state after an event never gets the one before it. Other events do not wait.
 */
export class StateAgreement {
  /** The last event under way for each id, so that events of one container stay in order. */
  private readonly tails = new Map<string, Promise<void>>();

  constructor(private readonly deps: { channel: GrpcChannel; clock: Clock; tasks: TaskStates }) {}

  /** Passes the event to the sink, now or when the runtime agrees; drops it when the signal aborts (a resync follows). */
  pass({ isSettled, ...event }: TaskEvent, sink: EventSink, signal: AbortSignal): void {
    const before = this.tails.get(event.id);
    if (before === undefined && event.type !== "started" && isSettled !== true) return sink.push(event);
    const tail = (async (): Promise<void> => {
      await before;
      if (event.type === "started") await this.untilStarted(event.id, signal);
      if (isSettled === true) await this.untilState(event.id, (state) => state !== RUNNING, signal);
      if (!signal.aborted) sink.push(event);
    })();
    this.tails.set(event.id, tail);
    void tail.then(() => {
      if (this.tails.get(event.id) === tail) this.tails.delete(event.id);
    });
  }

  private untilStarted(id: string, signal: AbortSignal): Promise<void> {
    const own = this.deps.tasks.startOf(id);
    return own ?? this.untilState(id, (state) => state !== ContainerState.CONTAINER_CREATED, signal);
  }

  /** Never rejects: an event that cannot be checked is better than none. */
  private async untilState(
    id: string,
    hasAgreed: (state: ContainerState | undefined) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { channel, clock } = this.deps;
    const until = clock.now().mono + MAX_LAG_MS;
    try {
      for (let step = 1; clock.now().mono < until; step = Math.min(MAX_STEP_MS, step * 2)) {
        const options = { signal, timeoutMs: STATUS_LIMIT_MS };
        const { status } = await channel.unary(runtimeService.containerStatus, { containerId: id }, options);
        if (hasAgreed(status?.state)) return;
        await clock.sleep(step, { signal });
      }
    } catch {
      // A sandbox (which CRI shows only when it is ready), gone already, or the connection is lost and a resync follows.
    }
  }
}

const RUNNING = ContainerState.CONTAINER_RUNNING;
