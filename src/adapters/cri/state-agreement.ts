import type { Clock } from "../../lib/clock.ts";
import type { ContainerEvent, EventSink } from "./event-source.ts";
import { ContainerState } from "./generated/cri.ts";
import type { GrpcChannel } from "./grpc.ts";
import { runtimeService } from "./methods.ts";
import type { OwnStarts } from "./own-starts.ts";

/** How long the CRI plug-in may lag behind containerd's events before the event goes out all the same. */
const LONGEST_LAG_MS = 500;
const LONGEST_STEP_MS = 8;
const QUESTION_LIMIT_MS = 1000;

/**
 * Holds back `started` until the call that started it is answered, or a status call tells the same (a few
 * milliseconds), and with it what comes later about the same container, so that who reads the state after an event
 * never sees the one before it. Others do not wait.
 */
export class StateAgreement {
  /** The last event under way for each id, so that events of one container stay in order. */
  private readonly tails = new Map<string, Promise<void>>();

  constructor(private readonly deps: { channel: GrpcChannel; clock: Clock; starts: OwnStarts }) {}

  /** Gives the event to the sink, now or when the runtime agrees; drops it when the signal aborts (a resync follows). */
  pass(event: ContainerEvent, sink: EventSink, signal: AbortSignal): void {
    const before = this.tails.get(event.id);
    if (before === undefined && event.type !== "started") return sink.push(event);
    const tail = (async (): Promise<void> => {
      await before;
      if (event.type === "started") await this.untilStarted(event.id, signal);
      if (!signal.aborted) sink.push(event);
    })();
    this.tails.set(event.id, tail);
    void tail.then(() => {
      if (this.tails.get(event.id) === tail) this.tails.delete(event.id);
    });
  }

  /** Never rejects: an event that cannot be checked is better than none. */
  private async untilStarted(id: string, signal: AbortSignal): Promise<void> {
    const { channel, clock, starts } = this.deps;
    const own = starts.of(id);
    if (own !== undefined) return own;
    const until = clock.now().mono + LONGEST_LAG_MS;
    try {
      for (let step = 1; clock.now().mono < until; step = Math.min(LONGEST_STEP_MS, step * 2)) {
        const options = { signal, timeoutMs: QUESTION_LIMIT_MS };
        const { status } = await channel.unary(runtimeService.containerStatus, { containerId: id }, options);
        if (status?.state !== ContainerState.CONTAINER_CREATED) return;
        await clock.sleep(step, { signal });
      }
    } catch {
      // A sandbox (which CRI shows only when it is ready), gone already, or the connection is lost and a resync follows.
    }
  }
}
