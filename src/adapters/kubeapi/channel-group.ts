import type { Abortable } from "../../lib/abort.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import type { Channel } from "./wire.ts";

/**
 * The channels of one lane. A channel is filled before another one is opened: a request over the server's stream limit
 * would hang without an error. Callers that need a new channel share one dial.
 */
export class ChannelGroup {
  private channels: Channel[] = [];
  private opening: Promise<void> | undefined;

  /** `open` opens a channel and calls `changed` whenever its capacity changes. */
  constructor(private readonly open: (changed: () => void, options: Abortable) => Promise<Channel>) {}

  /**
   * Calls `work` with a channel that has capacity; `work` must start its request before it awaits anything, so that the
   * capacity is not taken meanwhile. Rejects if no channel can be opened.
   */
  async use<R>({ signal }: Abortable, work: (channel: Channel) => Promise<R>): Promise<R> {
    for (;;) {
      signal.throwIfAborted();
      const free = this.channels.find((channel) => channel.room > 0);
      if (free !== undefined) return work(free);
      this.opening ??= this.openOne().finally(() => {
        this.opening = undefined;
      });
      await orAborted(this.opening, signal);
    }
  }

  /** Running requests go on; new ones get a new connection. */
  drain(): void {
    for (const channel of [...this.channels]) channel.drain();
    this.tidy();
  }

  /** Pings the connections; requests on a dead one fail. */
  check(): void {
    for (const channel of [...this.channels]) channel.check();
  }

  destroy(): void {
    for (const channel of this.channels) channel.destroy();
    this.channels = [];
    this.closing.abort(new Error("client was closed"));
  }

  private readonly closing = new AbortController();

  /** Uses no caller's signal: the first caller may leave while others still wait. The dial has its own timeout. */
  private async openOne(): Promise<void> {
    const channel = await this.open(() => this.tidy(), this.closing);
    if (this.closing.signal.aborted) return channel.destroy();
    this.channels.push(channel);
  }

  /** Drops closed channels, and closes idle ones beyond the first. */
  private tidy(): void {
    let idle = 0;
    const kept: Channel[] = [];
    const surplus: Channel[] = [];
    for (const channel of this.channels) {
      if (channel.room === 0 && channel.isIdle) continue;
      (channel.isIdle && ++idle > 1 ? surplus : kept).push(channel);
    }
    this.channels = kept;
    for (const channel of surplus) channel.drain();
  }
}
