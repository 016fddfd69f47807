import { type Abortable, AbortScope, isAborted } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { KeyedQueue } from "../lib/keyed-queue.ts";
import type { Logger } from "../lib/log.ts";
import type { PluginHandler, PluginType, RegisteredPlugin } from "./handler.ts";

/** A connection to the registration service of a plugin. */
export interface PluginRegistration {
  info(options: Abortable): Promise<{
    readonly type: string;
    readonly name: string;
    readonly endpoint: string;
    readonly versions: readonly string[];
  }>;
  /** `error` is empty if the plugin is registered. */
  notify(error: string, options: Abortable): Promise<void>;
  close(): void;
}

export interface PluginRegistryDeps {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  /** Connects to the plugin that listens on a socket. */
  connect(socket: string): PluginRegistration;
}

/** Between attempts to register one plugin, in milliseconds, as in Kubernetes. */
const RETRY = { initialMs: 500, maxMs: 122_000 };

interface Found {
  identity: string;
  readonly backoff: Backoff;
  timer?: Timer | undefined;
  /** Ends the attempt that runs. */
  attempt?: AbortScope | undefined;
  lastError?: string | undefined;
}

interface Registered {
  readonly identity: string;
  readonly plugin: RegisteredPlugin;
  readonly handler: PluginHandler;
}

/**
 * Registers the plugins whose sockets are found, each on its own: a plugin that hangs or refuses delays no other.
 *
 *   found ──GetInfo, validate, register, notify──► registered ──socket removed or replaced──► deregistered
 *     ▲ └── failed: told why, again with back-off
 */
export class PluginRegistry {
  private readonly handlers = new Map<string, PluginHandler>();
  private readonly found = new Map<string, Found>();
  private readonly registered = new Map<string, Registered>();
  private readonly queue: KeyedQueue<string>;

  constructor(private readonly deps: PluginRegistryDeps) {
    this.queue = new KeyedQueue((socket, signal) => this.sync(socket, signal), {
      onError: (_socket, error) => {
        throw error;
      },
    });
  }

  /** Hands the plugins of a type to a feature; to be called before the registry runs, or plugins wait for a retry. */
  handle(type: PluginType, handler: PluginHandler): void {
    this.handlers.set(type, handler);
  }

  /** Replaces what is known of sockets by all that are there now, with their identities. */
  update(sockets: ReadonlyMap<string, string>): void {
    for (const [socket, found] of this.found) {
      if (sockets.get(socket) === found.identity) continue;
      this.found.delete(socket);
      found.timer?.cancel();
      found.attempt?.abort();
      this.queue.wake(socket);
    }
    for (const [socket, identity] of sockets) {
      if (this.found.has(socket)) continue;
      this.found.set(socket, { identity, backoff: new Backoff(RETRY) });
      this.queue.wake(socket);
    }
  }

  /** Ends all attempts. Registered plugins stay with their handlers. */
  async close(): Promise<void> {
    for (const { timer } of this.found.values()) timer?.cancel();
    await this.queue.close();
  }

  /** The sockets that are there and those of registered plugins, for metrics. */
  get sockets(): { readonly found: readonly string[]; readonly registered: readonly string[] } {
    return { found: [...this.found.keys()], registered: [...this.registered.keys()] };
  }

  private async sync(socket: string, signal: AbortSignal): Promise<void> {
    const found = this.found.get(socket);
    const registered = this.registered.get(socket);
    if (registered !== undefined && registered.identity !== found?.identity) {
      this.registered.delete(socket);
      registered.handler.deregister(registered.plugin);
      this.deps.log.info("Deregistered plugin", { plugin: registered.plugin.name, socket });
    }
    if (found === undefined || this.registered.has(socket)) return;
    if (found.backoff.remaining(this.deps.clock.now()) > 0) return;
    const scope = new AbortScope([signal]);
    found.attempt = scope;
    try {
      await this.register(socket, found.identity, scope);
      found.backoff.reset();
      found.lastError = undefined;
    } catch (error) {
      if (isAborted(error, scope.signal)) return;
      this.retry(socket, found, messageOf(error));
    } finally {
      found.attempt = undefined;
      scope.dispose();
    }
  }

  private retry(socket: string, found: Found, error: string): void {
    const { clock, log } = this.deps;
    const delayMs = found.backoff.next(clock.now());
    if (error !== found.lastError) log.warn("Failed to register plugin", { socket, error });
    found.lastError = error;
    found.timer = clock.after(delayMs, () => this.queue.wake(socket));
  }

  private async register(socket: string, identity: string, options: Abortable): Promise<void> {
    const registration = this.deps.connect(socket);
    try {
      const { type, ...info } = await registration.info(options);
      const plugin = { ...info, endpoint: info.endpoint === "" ? socket : info.endpoint, socket };
      const handler = this.handlers.get(type);
      try {
        if (handler === undefined)
          throw new Error(`no handler registered for plugin type: ${type} at socket ${socket}`);
        handler.validate(plugin);
        await handler.register(plugin, options);
      } catch (error) {
        if (isAborted(error, options.signal)) throw error;
        await registration.notify(messageOf(error), options).catch(() => undefined);
        throw error;
      }
      await this.confirm(registration, { identity, plugin, handler }, options);
      this.deps.log.info("Registered plugin", { type, plugin: plugin.name, socket });
    } finally {
      registration.close();
    }
  }

  /** A plugin that cannot be told is not registered: it would wait for ever. */
  private async confirm(registration: PluginRegistration, entry: Registered, options: Abortable): Promise<void> {
    try {
      await registration.notify("", options);
      this.registered.set(entry.plugin.socket, entry);
    } catch (error) {
      entry.handler.deregister(entry.plugin);
      throw error;
    }
  }
}
