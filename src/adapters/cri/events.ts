import { type Abortable, AbortScope } from "../../lib/abort.ts";
import { Backoff } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { GrpcChannel } from "../grpc/channel.ts";
import { EventQueue } from "../runtime/event-queue.ts";
import { RuntimeError, type RuntimeEvent, type RuntimePort } from "../runtime/port.ts";
import { type EventSource, LIVENESS_LIMIT_MS } from "./event-source.ts";
import { ContainerdEventSource } from "./events-containerd.ts";
import { CriEventSource } from "./events-cri.ts";
import { RelistSource } from "./events-relist.ts";
import type { EventsListener } from "./listeners.ts";
import { runtimeService } from "./methods.ts";
import type { TaskStates } from "./task-states.ts";

/** The event stream of a dead or hung runtime is silent like that of an idle one; a call now and then tells which. */
const LIVENESS_EVERY_MS = 5000;
const RECONNECT = { initialMs: 50, maxMs: 1000 } as const;

interface Deps {
  readonly channel: GrpcChannel;
  readonly clock: Clock;
  readonly log: Logger;
  readonly tasks: TaskStates;
  readonly runtime: Pick<RuntimePort, "listContainers" | "listSandboxes">;
  readonly onEvents?: EventsListener;
}

/**
 * Keeps one subscription alive: the best source that the runtime has, a liveness question beside it, and a new
 * connection after each loss. Readers get `resync` whenever something may have been missed.
 */
export class RuntimeEvents {
  private current: EventSource["name"] | "none" = "none";
  private readonly relist: RelistSource;
  private readonly sources: readonly EventSource[];
  private readonly queues = new Set<EventQueue>();

  constructor(
    private readonly deps: Deps,
    options: { namespace: string },
  ) {
    this.relist = new RelistSource(deps);
    this.sources = [new CriEventSource(deps, options), new ContainerdEventSource(deps, options), this.relist];
  }

  /** Where events come from at this moment. */
  get source(): EventSource["name"] | "none" {
    return this.current;
  }

  /** Records that a process of the container was killed for its memory, and passes it on like an event of the runtime. */
  killedForMemory(id: string): void {
    const { tasks, clock } = this.deps;
    tasks.killedForMemory(id);
    const event: RuntimeEvent = { kind: "container", type: "oom", id, at: clock.now().wall };
    for (const queue of this.queues) queue.push(event);
  }

  /** The agent has changed something itself: a source that lists should list soon. */
  expectChange(): void {
    this.relist.expectChange();
  }

  /** Ends when the signal aborts or the reader leaves, never by itself. */
  async *subscribe({ signal }: Abortable): AsyncGenerator<RuntimeEvent, void, undefined> {
    const scope = new AbortScope([signal]);
    const queue = new EventQueue();
    const feeding = this.feed(queue, scope.signal);
    this.queues.add(queue);
    try {
      yield* queue.read(scope.signal);
    } finally {
      this.queues.delete(queue);
      scope.abort();
      await feeding;
      scope.dispose();
    }
  }

  /** Connects again and again. Resolves when the signal aborts; never rejects. */
  private async feed(queue: EventQueue, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    const backoff = new Backoff(RECONNECT);
    while (!signal.aborted) {
      try {
        await this.attend(queue, () => backoff.reset(), signal);
      } catch (error) {
        if (signal.aborted) break;
        this.deps.onEvents?.("lost");
        const level = backoff.state === undefined ? 0 : 4;
        log.debug(level, "Lost runtime events, reconnecting", { error: messageOf(error) });
      }
      this.current = "none";
      await clock.sleep(backoff.next(clock.now()), { signal }).catch(() => undefined);
    }
    this.current = "none";
  }

  /** One connection: the first source that the runtime knows, until it ends. */
  private async attend(queue: EventQueue, onEstablished: () => void, signal: AbortSignal): Promise<void> {
    for (const source of this.sources) {
      const scope = new AbortScope([signal]);
      const sink = {
        established: (): void => {
          this.current = source.name;
          this.deps.log.debug(2, "Subscribed to runtime events", { source: source.name });
          this.deps.onEvents?.("connected");
          onEstablished();
          queue.push({ kind: "resync" });
        },
        push: (event: RuntimeEvent): void => {
          if (event.kind === "container") this.deps.onEvents?.({ lateMs: this.deps.clock.now().wall - event.at });
          queue.push(event);
        },
      };
      try {
        await Promise.race([source.run(sink, scope.signal), this.watchLiveness(scope.signal)]);
      } catch (error) {
        if (!(error instanceof RuntimeError) || error.code !== "Unimplemented") throw error;
      } finally {
        scope.abort();
        scope.dispose();
      }
    }
  }

  /** Rejects when the runtime stops answering. */
  private async watchLiveness(signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.deps.clock.sleep(LIVENESS_EVERY_MS, { signal });
      try {
        await this.deps.channel.unary(runtimeService.status, {}, { signal, timeoutMs: LIVENESS_LIMIT_MS });
      } catch (error) {
        // Any other answer is an answer.
        if (!(error instanceof RuntimeError) || error.code === "Unavailable" || error.code === "Timeout") throw error;
      }
    }
  }
}
