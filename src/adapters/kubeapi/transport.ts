import type { TLSSocket } from "node:tls";
import { type Abortable, TimeLimitError, withScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { ChannelGroup } from "./channel-group.ts";
import type { ClientConfig } from "./client-config.ts";
import type { Credentials, TlsMaterial } from "./credentials.ts";
import { type Connection, dial } from "./dial.ts";
import { H2Channel } from "./h2-channel.ts";
import { ApiError } from "./port.ts";
import { Servers } from "./servers.ts";
import { type Channel, ConnectionLost, type WireAnswer, type WireRequest } from "./wire.ts";

/** Calls and watches never share a connection: a burst of watch events must not hold up a lease. */
export type Lane = "call" | "watch";

export interface TransportDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly credentials: Credentials;
}

/** The outcome of one request. */
export interface RequestAnswer {
  /** The HTTP status, or `<error>` if there was none. */
  readonly code: string;
  readonly method: string;
  readonly host: string;
  /** Until the head of the answer, in milliseconds; missing for a watch. */
  readonly tookMs?: number;
}

/** Attempts of a request that the server did not begin to process. */
const MOST_ATTEMPTS = 3;
/** Timeout for the server's settings on a new connection, in milliseconds. */
const SETTINGS_LIMIT_MS = 10_000;

/** The connections to the API servers. All clients of one identity share one. */
export class Transport {
  private readonly servers: Servers;
  private readonly groups: Readonly<Record<Lane, ChannelGroup>>;
  private tls: TlsMaterial | undefined;
  /** Called for each answer, and for each request that got none. */
  onAnswer: (answer: RequestAnswer) => void = () => undefined;

  constructor(
    private readonly deps: TransportDeps,
    private readonly config: ClientConfig,
  ) {
    this.servers = new Servers(config.servers);
    const group = (): ChannelGroup => new ChannelGroup((changed, options) => this.open(changed, options));
    this.groups = { call: group(), watch: group() };
  }

  /**
   * Sends a request and resolves with the response head, whatever its status. Rejects with `ApiError` if no server is
   * reachable, with `ConnectionLost` if the connection was lost, with the signal's reason at an abort. Reads, and requests
   * that the server did not begin to process, are retried.
   */
  async send(lane: Lane, request: WireRequest, options: Abortable): Promise<WireAnswer> {
    for (let attempt = 1; ; attempt++) {
      const { tls, headers } = await this.deps.credentials.current(options);
      this.present(tls);
      const began = this.deps.clock.now().mono;
      const tookMs = (): number | undefined => (lane === "call" ? this.deps.clock.now().mono - began : undefined);
      const wire = { ...request, headers: { ...request.headers, ...headers } };
      try {
        const answer = await this.groups[lane].use(options, (channel) => this.sendOn(channel, wire, options));
        this.report(request, String(answer.status), tookMs());
        this.judge(answer.status);
        return answer;
      } catch (error) {
        if (!options.signal.aborted) this.report(request, "<error>", tookMs());
        const mayRepeat = error instanceof ConnectionLost && (!error.mayHaveBegun || request.method === "GET");
        if (!mayRepeat || attempt >= MOST_ATTEMPTS) throw error;
      }
    }
  }

  /**
   * Reads paths together on one connection. Undefined for each that was not answered with 200: `send` finds out why.
   * Rejects as `send` does if no server is reachable.
   */
  async readAll(
    { paths, headers: own }: { readonly paths: readonly string[]; readonly headers: WireRequest["headers"] },
    options: Abortable,
  ): Promise<readonly (Buffer | undefined)[]> {
    const { tls, headers } = await this.deps.credentials.current(options);
    this.present(tls);
    const began = this.deps.clock.now().mono;
    const requests = { paths, headers: { ...own, ...headers } };
    const answers = await this.groups.call.use(options, async (channel) => channel.readAll?.(requests, options));
    const tookMs = this.deps.clock.now().mono - began;
    return paths.map((_path, at) => {
      const answer = answers?.[at];
      if (answer !== undefined) this.report({ method: "GET" }, String(answer.status), tookMs);
      return answer?.status === 200 ? answer.body : undefined;
    });
  }

  /** After a 401: reads the credentials before the next request. */
  refreshCredentials(): void {
    this.deps.credentials.refresh();
  }

  /** Closes every connection when its last request has ended; new requests get new ones. */
  renew(): void {
    for (const group of Object.values(this.groups)) group.drain();
  }

  /** Closes all connections at once. */
  close(): void {
    for (const group of Object.values(this.groups)) group.destroy();
  }

  private present(tls: TlsMaterial): void {
    if (this.tls !== undefined && this.tls !== tls) {
      this.deps.log.info("API credentials changed, reconnecting");
      this.renew();
    }
    this.tls = tls;
  }

  private report({ method }: Pick<WireRequest, "method">, code: string, tookMs: number | undefined): void {
    const { host } = this.servers.current;
    this.onAnswer({ code, method, host, ...(tookMs !== undefined && { tookMs }) });
  }

  private judge(status: number): void {
    if (!this.servers.shouldLeaveAfter(status)) return;
    const failed = this.servers.current;
    this.servers.leave(failed);
    this.deps.log.warn("API server is unavailable, failing over", { from: failed.host, to: this.servers.current.host });
    this.renew();
  }

  /** Opens a connection to the first server that answers, beginning with the one in use. */
  private async open(changed: () => void, options: Abortable): Promise<Channel> {
    const failures: string[] = [];
    for (let tries = 0; tries < this.servers.all.length; tries++) {
      const server = this.servers.current;
      try {
        return await this.openTo(server, changed, options);
      } catch (error) {
        options.signal.throwIfAborted();
        failures.push(`${server.origin}: ${messageOf(error)}`);
        this.servers.leave(server);
      }
    }
    throw new ApiError("Unavailable", `connect to API server: ${failures.join("; ")}`);
  }

  private async openTo(server: URL, onChange: () => void, options: Abortable): Promise<Channel> {
    const { clock } = this.deps;
    const connect = (): Promise<Connection> => {
      const tls = this.tls ?? { authority: "", certificate: "", key: "" };
      return dial({ ...this.config, server, tls }, { signal: options.signal, clock });
    };
    const { socket, protocol } = await connect();
    if (protocol === "h2") {
      return withScope([options.signal], { clock, ms: SETTINGS_LIMIT_MS }, (signal) =>
        // Only TLS agrees on h2.
        H2Channel.open(socket as TLSSocket, { clock, server, onChange }, { signal }),
      );
    }
    const { H1Channel } = await import("./h1-channel.ts");
    return new H1Channel(socket, { server, onChange, dialAgain: async () => (await connect()).socket });
  }

  private async sendOn(channel: Channel, wire: WireRequest, options: Abortable): Promise<WireAnswer> {
    const { heard } = channel;
    try {
      return await channel.send(wire, options);
    } catch (error) {
      // Only our own timeout indicates a dead connection; an abort of the caller does not. All connections are checked:
      // a watch would not notice for another minute.
      if (options.signal.reason instanceof TimeLimitError) {
        channel.suspect(heard);
        for (const group of Object.values(this.groups)) group.check();
      }
      throw error;
    }
  }
}
