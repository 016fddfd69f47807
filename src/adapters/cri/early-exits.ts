import type { Clock } from "../../lib/clock.ts";
import type { GrpcChannel } from "../grpc/channel.ts";
import type { ContainerEvent } from "./event-source.ts";
import { TaskExit, TaskOOM } from "./generated/containerd-events.ts";
import { eventService } from "./methods.ts";
import type { TaskStates } from "./task-states.ts";

const TOPICS = ["/tasks/exit", "/tasks/oom"] as const;

/**
 * Exits and OOM kills as containerd 2 itself reports them, beside its CRI event stream: that one reports an exit only
 * after the task is deleted, 40 to 100 ms later, which is time that a restart would wait, and OOM kills not at all. An
 * extra, so it never rejects: a runtime that has no such service, or a lost connection, leaves CRI's own events.
 */
export async function followExits(
  { channel, clock, tasks }: { channel: GrpcChannel; clock: Clock; tasks: TaskStates },
  { namespace, push }: { namespace: string; push: (event: ContainerEvent) => void },
  signal: AbortSignal,
): Promise<void> {
  const exited = async ({ containerId: id, exitStatus, exitedAt }: TaskExit): Promise<void> => {
    // Otherwise an exit would overtake its own start.
    await tasks.startOf(id);
    if (signal.aborted) return;
    const at = exitedAt?.getTime() ?? clock.now().wall;
    if (tasks.exited(id, { exitCode: exitStatus, at })) push({ kind: "container", type: "stopped", id, at });
  };
  const filters = TOPICS.map((topic) => `topic=="${topic}",namespace==${namespace}`);
  try {
    const messages = channel.stream(eventService.subscribe, { filters }, { signal, optional: true });
    for await (const { topic, event, timestamp } of messages) {
      const bytes = event?.value ?? new Uint8Array();
      if (topic === "/tasks/oom") {
        const { containerId: id } = TaskOOM.decode(bytes);
        tasks.killedForMemory(id);
        push({ kind: "container", type: "oom", id, at: timestamp?.getTime() ?? clock.now().wall });
      } else {
        const exit = TaskExit.decode(bytes);
        if (exit.id === exit.containerId) void exited(exit);
      }
    }
  } catch {
    // See above.
  }
}
