import type { Abortable } from "../../lib/abort.ts";
import { orAborted } from "./or-aborted.ts";
import type { Channel } from "./wire.ts";

/**
 * The channels of one purpose. Each is filled before another one is opened, because a request over the server's
 * limit hangs without an error; everybody who needs a new one waits for the same dial.
 */
export class ChannelGroup {
  private channels: Channel[] = [];
  private opening: Promise<void> | undefined;

  /** `open` makes a channel and tells `changed` whenever its room changes. */
  constructor(private readonly open: (changed: () => void, options: Abortable) => Promise<Channel>) {}

  /**
   * Gives a channel with room to `work`, which begins its request before it awaits anything: between a look at the
   * room and its use nobody else may come. Rejects when no channel can be opened.
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

  /** Requests under way go on; new ones get a new connection. */
  drain(): void {
    for (const channel of [...this.channels]) channel.drain();
    this.tidy();
  }

  /** Requests under way go on unless their connection turns out to be dead. */
  check(): void {
    for (const channel of [...this.channels]) channel.check();
  }

  destroy(): void {
    for (const channel of this.channels) channel.destroy();
    this.channels = [];
    this.closing.abort(new Error("client was closed"));
  }

  private readonly closing = new AbortController();

  /** Nobody's own signal: the one who asked first may leave while others still wait. The dial has limits of its own. */
  private async openOne(): Promise<void> {
    const channel = await this.open(() => this.tidy(), this.closing);
    if (this.closing.signal.aborted) return channel.destroy();
    this.channels.push(channel);
  }

  /** Forgets channels that ended, and closes idle ones beyond the first. */
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
