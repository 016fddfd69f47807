import type { Abortable } from "../../lib/abort.ts";
import { imageService, runtimeService } from "../cri/methods.ts";
import { GrpcChannel } from "../grpc/channel.ts";

/** The conditions that count; containerd 2 reports `ContainerdHasNoDeprecationWarnings` false on every cgroup v1 machine. */
const COUNTED = new Set(["RuntimeReady", "NetworkReady"]);

/**
 * Just enough CRI to check that a runtime is up and has an image, on a connection of its own: start-up asks every 20 ms
 * with a new one, for which the reconnect back-off of a shared channel is too slow.
 */
export class CriProbe {
  private readonly channel: GrpcChannel;

  constructor(socket: string) {
    this.channel = new GrpcChannel(socket, undefined, { hasOwnConnection: true });
  }

  /** Which of runtime and network is not ready, as `reason: message`; empty when both are. */
  async unreadiness({ signal }: Abortable): Promise<string[]> {
    const { status } = await this.channel.unary(runtimeService.status, {}, { signal });
    const conditions = (status?.conditions ?? []).filter(({ type, status }) => COUNTED.has(type) && !status);
    return conditions.map(({ reason, message }) => `${reason}: ${message}`);
  }

  /** Whether the runtime has an image of this name. */
  async hasImage(name: string, { signal }: Abortable): Promise<boolean> {
    const { image } = await this.channel.unary(imageService.imageStatus, { image: { image: name } }, { signal });
    return image !== undefined;
  }

  /** The ids of all sandboxes. */
  async sandboxIds({ signal }: Abortable): Promise<ReadonlySet<string>> {
    const { items } = await this.channel.unary(runtimeService.listPodSandbox, {}, { signal });
    return new Set(items.map(({ id }) => id));
  }

  close(): void {
    this.channel.close();
  }
}
