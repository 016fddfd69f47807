import type { Clock } from "../../lib/clock.ts";
import type { ContainerEvent } from "./event-source.ts";
import { TaskExit } from "./generated/containerd-events.ts";
import { ContainerState } from "./generated/cri.ts";
import type { GrpcChannel } from "./grpc.ts";
import type { KnownExits } from "./known-exits.ts";
import { eventService, runtimeService } from "./methods.ts";

const QUESTION_LIMIT_MS = 1000;

/**
 * Exits as containerd 2 itself tells them, beside its CRI event stream: that one tells an exit only after the task is
 * deleted, 40 to 100 ms later, which is time that a restart would wait. An extra, so it never rejects: a runtime that
 * has no such service, or a lost connection, leaves CRI's own events.
 */
export async function followExits(
  { channel, clock, exits }: { channel: GrpcChannel; clock: Clock; exits: KnownExits },
  { namespace, onExit }: { namespace: string; onExit: (event: ContainerEvent) => void },
  signal: AbortSignal,
): Promise<void> {
  /** Only what CRI still takes for running is news; before `running` an exit would overtake its own start. */
  const takesForRunning = async (containerId: string): Promise<boolean> => {
    const options = { signal, timeoutMs: QUESTION_LIMIT_MS };
    const { status } = await channel.unary(runtimeService.containerStatus, { containerId }, options);
    return status?.state === ContainerState.CONTAINER_RUNNING;
  };
  const tell = async ({ containerId: id, exitStatus, exitedAt }: TaskExit): Promise<void> => {
    if (!(await takesForRunning(id).catch(() => false)) || signal.aborted) return;
    const at = exitedAt?.getTime() ?? clock.now().wall;
    if (exits.add(id, { exitCode: exitStatus, at })) onExit({ kind: "container", type: "stopped", id, at });
  };
  const filters = [`topic=="/tasks/exit",namespace==${namespace}`];
  try {
    for await (const { event } of channel.stream(eventService.subscribe, { filters }, { signal, optional: true })) {
      const exit = TaskExit.decode(event?.value ?? new Uint8Array());
      if (exit.id === exit.containerId) void tell(exit);
    }
  } catch {
    // See above.
  }
}
