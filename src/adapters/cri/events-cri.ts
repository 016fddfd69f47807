import type { Clock } from "../../lib/clock.ts";
import type { GrpcChannel } from "../grpc/channel.ts";
import { RuntimeError } from "../runtime/port.ts";
import { followExits } from "./early-exits.ts";
import { type ContainerEvent, type EventSink, type EventSource, untilStanding } from "./event-source.ts";
import { toMillis } from "./from-wire.ts";
import { type ContainerEventResponse, ContainerEventType } from "./generated/cri.ts";
import { runtimeService } from "./methods.ts";
import type { TaskStates } from "./task-states.ts";

/** Replayed events come at once after subscribing; after this nothing is judged by its age (wall clocks jump). */
const REPLAY_WINDOW_MS = 30_000;
/** A stream that ends without an error this soon was never meant to live: CRI-O with events switched off. */
const STILLBORN_MS = 1000;

const TYPES: Readonly<Record<ContainerEventType, ContainerEvent["type"]>> = {
  [ContainerEventType.CONTAINER_CREATED_EVENT]: "created",
  [ContainerEventType.CONTAINER_STARTED_EVENT]: "started",
  [ContainerEventType.CONTAINER_STOPPED_EVENT]: "stopped",
  [ContainerEventType.CONTAINER_DELETED_EVENT]: "deleted",
};

/**
 * CRI's GetContainerEvents. The runtime sends an event after it has updated its own state, so status calls agree.
 * Where containerd's own service reports an exit sooner, `stopped` comes twice: early, and when the exit is settled.
 */
export class CriEventSource implements EventSource {
  readonly name = "cri";

  constructor(
    private readonly deps: { channel: GrpcChannel; clock: Clock; tasks: TaskStates },
    private readonly options: { namespace: string },
  ) {}

  async run(sink: EventSink, signal: AbortSignal): Promise<never> {
    const { channel, clock } = this.deps;
    const began = clock.now();
    const held: ContainerEvent[] = [];
    let standing = false;
    this.deps.tasks.clear();
    const reading = (async (): Promise<never> => {
      for await (const message of channel.stream(runtimeService.getContainerEvents, {}, { signal, optional: true })) {
        const event = toEvent(message);
        if (event === undefined) continue;
        if (event.at < began.wall && clock.now().mono - began.mono < REPLAY_WINDOW_MS) continue;
        if (event.type === "stopped") this.deps.tasks.settled(event.id);
        if (event.type === "deleted") this.deps.tasks.removed(event.id);
        if (standing) sink.push(event);
        else held.push(event);
      }
      const age = clock.now().mono - began.mono;
      throw new RuntimeError(
        age < STILLBORN_MS ? "Unimplemented" : "Unavailable",
        "the runtime ended its event stream",
      );
    })();
    await Promise.race([reading, untilStanding(this.deps, signal)]);
    standing = true;
    sink.established();
    for (const event of held) sink.push(event);
    void followExits(this.deps, { ...this.options, push: (event) => sink.push(event) }, signal);
    return reading;
  }
}

/** Undefined for a type that a newer runtime may have. */
function toEvent(message: ContainerEventResponse): ContainerEvent | undefined {
  const type: ContainerEvent["type"] | undefined = TYPES[message.containerEventType];
  if (type === undefined) return undefined;
  const podUid = message.podSandboxStatus?.metadata?.uid;
  return {
    kind: "container",
    type,
    id: message.containerId,
    ...(podUid && { podUid }),
    at: toMillis(message.createdAt),
  };
}
