import { ContainerAllocateResponse, type DevicePluginOptions } from "../adapters/devices/generated/deviceplugin.ts";
import type { DeviceList, PluginClient } from "../adapters/devices/plugin-client.ts";
import { RuntimeError } from "../adapters/runtime/port.ts";
import { type Abortable, AbortScope, isAborted } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Device } from "./device.ts";
import type { AllocatingPlugins } from "./device-allocator.ts";
import { ListBudget } from "./list-budget.ts";
import { ListTurns } from "./list-turns.ts";
import { listedDevices } from "./listed-devices.ts";

/** Milliseconds that a plugin that registers may take until it listens and answers, as in Kubernetes. */
const DIAL_MS = 10_000;
const DIAL_RETRY_MS = 100;
/** Milliseconds between two attempts if many plugins are dialled: one keeps the agent busy for about a millisecond. */
const DIAL_MS_EACH = 5;
/** Milliseconds that a plugin may take to allocate: other pods wait for their admission meanwhile. */
const ALLOCATE_MS = 60_000;
/** Milliseconds that a plugin is not asked to allocate after it did not answer. */
const STALLED_MS = 120_000;
/** Milliseconds of PreStartContainer, as in Kubernetes. */
const PRE_START_MS = 30_000;
/** Bytes of the largest answer to Allocate that is kept for a container. */
const MOST_ANSWER_BYTES = 256 * 1024;
/** Resources with plugins; a plugin that registers ever new ones is stopped there. */
const MOST_RESOURCES = 500;

/** What `PluginConnections` is built from. */
export interface PluginConnectionsDeps {
  connect(socket: string): PluginClient;
  readonly clock: Clock;
  readonly log: Logger;
  /** A plugin registered, listed its devices, or is gone. */
  connected(resource: string): void;
  listed(resource: string, devices: readonly Device[]): void;
  /** True while the devices of a resource are kept, also those of a lost plugin. */
  isKept(resource: string): boolean;
  lost(resource: string): void;
  /** Observes the duration of an Allocate, in seconds. */
  allocated(resource: string, seconds: number): void;
}

interface Connection {
  readonly socket: string;
  readonly client: PluginClient;
  readonly options: DevicePluginOptions;
  readonly scope: AbortScope;
  /** How many devices of its last list were ignored. */
  ignored: number;
  /** The call that it did not answer, and the monotonic time until which it is not asked to allocate. */
  stalled?: { readonly call: string; readonly until: number };
}

interface Dial {
  /** Undefined until it is its turn. */
  client: PluginClient | undefined;
}

/** The connected device plugins, one a resource: the last that registered. */
export class PluginConnections implements AllocatingPlugins {
  private readonly connections = new Map<string, Connection>();
  /** Resources whose last plugin has to agree to each start of a container. */
  private readonly strict = new Set<string>();
  /** The newest registration of each resource, while it is dialled. */
  private readonly dialled = new Map<string, Dial>();
  private readonly turns: ListTurns;
  private readonly budget: ListBudget;

  constructor(
    private readonly deps: PluginConnectionsDeps,
    /** Aborts when the agent stops. */
    private readonly signal: AbortSignal,
  ) {
    this.turns = new ListTurns(deps.clock);
    this.budget = new ListBudget((resource) => deps.isKept(resource));
    const closeAll = (): void => {
      for (const connection of this.connections.values()) leave(connection).abort();
    };
    signal.addEventListener("abort", closeAll, { once: true });
  }

  /** Connects a plugin and reads its devices from then on; it replaces an earlier one of the resource. */
  async register(resource: string, socket: string, { signal }: Abortable): Promise<void> {
    const others = this.connections.size + this.dialled.size;
    if (!this.connections.has(resource) && !this.dialled.has(resource) && others >= MOST_RESOURCES) {
      throw new Error(`more than ${MOST_RESOURCES} resources have device plugins`);
    }
    const dial: Dial = { client: undefined };
    // One at a time: whoever registers without end would have a connection for each.
    this.dialled.get(resource)?.client?.abort();
    this.dialled.set(resource, dial);
    const check = (): void => {
      if (this.dialled.get(resource) !== dial) throw new Error("superseded by a later registration of the resource");
    };
    try {
      if (this.dialIntervalMs > DIAL_RETRY_MS) await this.deps.clock.sleep(this.dialIntervalMs, { signal });
      check();
      const client = this.deps.connect(socket);
      dial.client = client;
      const options = await this.dial(client, signal, check);
      check();
      this.replace(resource, { socket, client, options, scope: new AbortScope([this.signal]), ignored: 0 });
    } catch (error) {
      dial.client?.abort();
      throw error;
    } finally {
      if (this.dialled.get(resource) === dial) this.dialled.delete(resource);
    }
  }

  /** Milliseconds in which all plugins that are dialled may be tried once. */
  private get dialIntervalMs(): number {
    return this.dialled.size * DIAL_MS_EACH;
  }

  /** The plugin that registered with this socket is gone. */
  deregister(resource: string, socket: string): void {
    const connection = this.connections.get(resource);
    if (connection?.socket === socket) this.drop(resource, connection, "its registration was removed");
  }

  async allocate(resource: string, ids: readonly string[], { signal }: Abortable): Promise<ContainerAllocateResponse> {
    const { clock } = this.deps;
    const connection = this.answering(resource);
    const began = clock.now().mono;
    try {
      const answer = await connection.client.allocate(ids, { signal, timeoutMs: ALLOCATE_MS });
      return usable(resource, answer);
    } catch (error) {
      this.noteTimeout(connection, "Allocate", error);
      throw isTimeout(error) ? new Error(`device plugin ${resource} did not answer Allocate`, { cause: error }) : error;
    } finally {
      this.deps.allocated(resource, (clock.now().mono - began) / 1000);
    }
  }

  async prefer(
    resource: string,
    choice: Parameters<AllocatingPlugins["prefer"]>[1],
    { signal }: Abortable,
  ): Promise<readonly string[]> {
    const connection = this.answering(resource);
    if (!connection.options.getPreferredAllocationAvailable) return [];
    try {
      return await connection.client.prefer(choice, { signal, timeoutMs: ALLOCATE_MS });
    } catch (error) {
      if (isAborted(error, signal)) throw error;
      this.noteTimeout(connection, "GetPreferredAllocation", error);
      const cause = messageOf(error);
      throw new Error(`device plugin GetPreferredAllocation rpc failed with err: ${cause}`, { cause: error });
    }
  }

  /**
   * Tells a plugin that wants to know that a container with these devices is about to start; without it the container
   * does not. Of a plugin that has not registered since the agent started nothing is known, and nothing is asked.
   */
  async preStart(resource: string, ids: readonly string[], { signal }: Abortable): Promise<void> {
    if (!this.strict.has(resource)) return;
    const connection = this.connectionOf(resource);
    try {
      await connection.client.preStart(ids, { signal, timeoutMs: PRE_START_MS });
    } catch (error) {
      if (isAborted(error, signal)) throw error;
      throw new Error(`device plugin PreStartContainer rpc failed with err: ${messageOf(error)}`, { cause: error });
    }
  }

  private connectionOf(resource: string): Connection {
    const connection = this.connections.get(resource);
    if (connection === undefined) throw new Error(`unknown Device Plugin ${resource}`);
    return connection;
  }

  /** The connection of a plugin that is asked to allocate: not of one that left a call without an answer shortly before. */
  private answering(resource: string): Connection {
    const connection = this.connectionOf(resource);
    const { call, until } = connection.stalled ?? { call: "", until: 0 };
    const leftMs = until - this.deps.clock.now().mono;
    if (leftMs <= 0) return connection;
    throw new Error(
      `device plugin ${resource} did not answer ${call}; it is asked again in ${Math.ceil(leftMs / 1000)} s`,
    );
  }

  private noteTimeout(connection: Connection, call: string, error: unknown): void {
    if (isTimeout(error)) connection.stalled = { call, until: this.deps.clock.now().mono + STALLED_MS };
  }

  /** Asks for the options until the plugin listens; `check` throws if nobody waits for it any more. */
  private async dial(client: PluginClient, signal: AbortSignal, check: () => void): Promise<DevicePluginOptions> {
    const { clock } = this.deps;
    const until = clock.now().mono + DIAL_MS;
    for (;;) {
      const timeoutMs = Math.max(1, until - clock.now().mono);
      try {
        return await client.options({ signal, timeoutMs });
      } catch (error) {
        if (isAborted(error, signal)) throw error;
        check();
        const isSilent = error instanceof RuntimeError && error.code === "Unavailable";
        if (!isSilent) throw new Error(`failed to get device plugin options: ${messageOf(error)}`, { cause: error });
        if (clock.now().mono + DIAL_RETRY_MS >= until) {
          throw new Error(`failed to dial device plugin: ${messageOf(error)}`, { cause: error });
        }
      }
      await clock.sleep(Math.max(DIAL_RETRY_MS, this.dialIntervalMs), { signal });
    }
  }

  private replace(resource: string, connection: Connection): void {
    const before = this.connections.get(resource);
    this.connections.set(resource, connection);
    if (connection.options.preStartRequired) this.strict.add(resource);
    else this.strict.delete(resource);
    // Its process may be the same: what it allocates just now counts.
    if (before !== undefined) leave(before).close();
    this.deps.log.info("Connected device plugin", { resource, socket: connection.socket });
    this.deps.connected(resource);
    void this.watch(resource, connection);
  }

  /** Reads lists until the stream ends: it is not asked for again, as in Kubernetes. Never rejects. */
  private async watch(resource: string, connection: Connection): Promise<void> {
    const { signal } = connection.scope;
    let why = "ListAndWatch ended";
    try {
      const lists = connection.client.listAndWatch({ signal });
      for await (const list of this.turns.inTurn(resource, lists, { signal })) {
        if (signal.aborted) return;
        this.takeList(resource, connection, list);
      }
    } catch (error) {
      why = messageOf(error);
    }
    // Replaced, deregistered, or the agent stops.
    if (signal.aborted) return;
    this.drop(resource, connection, why);
  }

  /** Not part of `watch`, which would keep the decoded list until the next one is there. */
  private takeList(resource: string, connection: Connection, list: DeviceList): void {
    const { devices, ignored } = listedDevices(list.read().devices);
    if (ignored > 0 && ignored !== connection.ignored) {
      this.deps.log.warn("Ignored devices of a plugin", { resource, ignored });
    }
    connection.ignored = ignored;
    this.budget.accept(resource, devices);
    this.deps.listed(resource, devices);
  }

  private drop(resource: string, connection: Connection, why: string): void {
    this.connections.delete(resource);
    leave(connection).abort();
    this.deps.log.warn("Lost device plugin", { resource, socket: connection.socket, error: why });
    this.deps.lost(resource);
  }
}

/** Stops following the plugin; its connection is still to be ended. */
function leave({ client, scope }: Connection): PluginClient {
  scope.abort();
  scope.dispose();
  return client;
}

function isTimeout(error: unknown): boolean {
  return error instanceof RuntimeError && error.code === "Timeout";
}

function usable(resource: string, answer: ContainerAllocateResponse | undefined): ContainerAllocateResponse {
  if (answer === undefined) throw new Error(`no containers return in allocation response of ${resource}`);
  const bytes = ContainerAllocateResponse.encode(answer).finish().length;
  if (bytes <= MOST_ANSWER_BYTES) return answer;
  throw new Error(`allocation response of ${resource} has ${bytes} bytes, more than ${MOST_ANSWER_BYTES}`);
}
