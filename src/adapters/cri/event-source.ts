import type { Clock } from "../../lib/clock.ts";
import type { GrpcChannel } from "../grpc/channel.ts";
import type { RuntimeEvent } from "../runtime/port.ts";
import { runtimeService } from "./methods.ts";

export type ContainerEvent = Extract<RuntimeEvent, { kind: "container" }>;

/** Where a source puts what it hears. `established` comes once, before any event. */
export interface EventSink {
  established(): void;
  push(event: ContainerEvent): void;
}

/** One way to learn what happens in the runtime. */
export interface EventSource {
  readonly name: "cri" | "containerd" | "relist";
  /**
   * Feeds the sink until the connection ends (rejects) or the signal aborts (rejects with its reason).
   * `Unimplemented` means: not with this runtime, take the next source.
   */
  run(sink: EventSink, signal: AbortSignal): Promise<never>;
}

/** A runtime that does not answer a small question in this time is as good as gone. */
export const LIVENESS_LIMIT_MS = 5000;
/** How long after a stream's request a refusal may still be on its way, or a subscription not yet in place. */
const SETTLING_MS = 20;

/**
 * Resolves when a stream that was just opened may be taken as standing: the runtime has answered another call on the
 * same connection, and a moment has passed. gRPC itself says nothing before the first message.
 */
export async function untilStanding(
  { channel, clock }: { channel: GrpcChannel; clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  await channel.unary(runtimeService.version, { version: "v1" }, { signal, timeoutMs: LIVENESS_LIMIT_MS });
  await clock.sleep(SETTLING_MS, { signal });
}
