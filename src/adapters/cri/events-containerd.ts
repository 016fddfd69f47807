import { randomBytes } from "node:crypto";
import type { Clock } from "../../lib/clock.ts";
import type { GrpcChannel } from "../grpc/channel.ts";
import { RuntimeError } from "../runtime/port.ts";
import {
  type ContainerEvent,
  type EventSink,
  type EventSource,
  LIVENESS_LIMIT_MS,
  untilStanding,
} from "./event-source.ts";
import {
  ContainerChange,
  type Envelope,
  TaskDelete,
  TaskExit,
  TaskOOM,
  TaskStart,
} from "./generated/containerd-events.ts";
import { eventService } from "./methods.ts";
import { StateAgreement, type TaskEvent } from "./state-agreement.ts";
import type { TaskStates } from "./task-states.ts";

/** What is subscribed to. A task is the running process, a container its record. */
const TOPICS = [
  "/tasks/start",
  "/tasks/exit",
  "/tasks/oom",
  "/tasks/delete",
  "/containers/create",
  "/containers/delete",
] as const;

/** How often the mark is published until it is heard, and when to go on without. */
const MARK_EVERY_MS = 10;
const MARK_TRIES = 50;

/**
 * containerd's own event service, for versions whose CRI has no event stream. Its events come before the CRI plug-in
 * has updated its state: a start is held back until both agree, an exit is kept as known so that both seem to.
 */
export class ContainerdEventSource implements EventSource {
  readonly name = "containerd";

  constructor(
    private readonly deps: { channel: GrpcChannel; clock: Clock; tasks: TaskStates },
    private readonly options: { namespace: string },
  ) {}

  async run(sink: EventSink, signal: AbortSignal): Promise<never> {
    const mark = `/kubelet-ts/subscribed/${randomBytes(8).toString("hex")}`;
    const filters = [...TOPICS, mark].map((topic) => `topic=="${topic}",namespace==${this.options.namespace}`);
    const agreement = new StateAgreement(this.deps);
    const held: TaskEvent[] = [];
    let standing = false;
    let heard = false;
    this.deps.tasks.clear();
    const reading = (async (): Promise<never> => {
      const options = { signal, optional: true };
      for await (const envelope of this.deps.channel.stream(eventService.subscribe, { filters }, options)) {
        if (envelope.topic === mark) heard = true;
        const event = this.take(envelope);
        if (event === undefined) continue;
        if (standing) agreement.pass(event, sink, signal);
        else held.push(event);
      }
      throw new RuntimeError("Unavailable", "containerd ended its event stream");
    })();
    await Promise.race([reading, this.untilHeard(mark, () => heard, signal)]);
    standing = true;
    sink.established();
    for (const event of held) agreement.pass(event, sink, signal);
    return reading;
  }

  /** Records what status calls need, and returns the event. Undefined for the exit of an exec, and for the mark. */
  private take(envelope: Envelope): TaskEvent | undefined {
    const { tasks, clock } = this.deps;
    const at = envelope.timestamp?.getTime() ?? clock.now().wall;
    const bytes = envelope.event?.value ?? new Uint8Array();
    const event = (type: ContainerEvent["type"], id: string): ContainerEvent => ({ kind: "container", type, id, at });
    switch (envelope.topic) {
      case "/tasks/start":
        return event("started", TaskStart.decode(bytes).containerId);
      case "/tasks/exit": {
        const { id, containerId, exitStatus, exitedAt } = TaskExit.decode(bytes);
        if (id !== containerId) return undefined;
        tasks.exited(id, { exitCode: exitStatus, at: exitedAt?.getTime() ?? at });
        return event("stopped", id);
      }
      case "/tasks/delete": {
        // The output is drained and CRI is about to settle the exit: it is read once more then.
        const { id, containerId, exitStatus, exitedAt } = TaskDelete.decode(bytes);
        if (id !== containerId && id !== "") return undefined;
        tasks.exited(containerId, { exitCode: exitStatus, at: exitedAt?.getTime() ?? at });
        return { ...event("stopped", containerId), isSettled: true };
      }
      case "/tasks/oom": {
        const { containerId } = TaskOOM.decode(bytes);
        tasks.killedForMemory(containerId);
        return event("oom", containerId);
      }
      case "/containers/create":
        return event("created", ContainerChange.decode(bytes).id);
      case "/containers/delete": {
        const { id } = ContainerChange.decode(bytes);
        tasks.removed(id);
        return event("deleted", id);
      }
      default:
        return undefined;
    }
  }

  /** A subscription gives no sign of life, so this publishes an event that only we know and waits until it comes back. */
  private async untilHeard(mark: string, heard: () => boolean, signal: AbortSignal): Promise<void> {
    const { channel, clock } = this.deps;
    const request = { topic: mark, event: { typeUrl: "google.protobuf.Empty", value: Buffer.alloc(0) } };
    const metadata = { "containerd-namespace": this.options.namespace };
    for (let tries = 0; tries < MARK_TRIES && !heard(); tries++) {
      try {
        await channel.unary(eventService.publish, request, { signal, metadata, timeoutMs: LIVENESS_LIMIT_MS });
      } catch (error) {
        if (error instanceof RuntimeError && error.code !== "Unavailable" && error.code !== "Timeout") break;
        throw error;
      }
      for (let waited = 0; waited < MARK_EVERY_MS && !heard(); waited++) await clock.sleep(1, { signal });
    }
    if (!heard()) await untilStanding(this.deps, signal);
  }
}
