import type { Clock } from "../../lib/clock.ts";
import type { ContainerEvent } from "./event-source.ts";
import { TaskExit } from "./generated/containerd-events.ts";
import type { GrpcChannel } from "./grpc.ts";
import type { KnownExits } from "./known-exits.ts";
import { eventService } from "./methods.ts";
import type { OwnStarts } from "./own-starts.ts";

/**
 * Exits as containerd 2 itself tells them, beside its CRI event stream: that one tells an exit only after the task is
 * deleted, 40 to 100 ms later, which is time that a restart would wait. An extra, so it never rejects: a runtime that
 * has no such service, or a lost connection, leaves CRI's own events.
 */
export async function followExits(
  { channel, clock, exits, starts }: { channel: GrpcChannel; clock: Clock; exits: KnownExits; starts: OwnStarts },
  { namespace, onExit }: { namespace: string; onExit: (event: ContainerEvent) => void },
  signal: AbortSignal,
): Promise<void> {
  const tell = async ({ containerId: id, exitStatus, exitedAt }: TaskExit): Promise<void> => {
    // Otherwise an exit would overtake its own start.
    await starts.of(id);
    if (signal.aborted) return;
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
