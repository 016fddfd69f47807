import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Pair, TestAuthority } from "./control-plane-pki.ts";

/** What happens to a request; undefined lets it pass. */
export type Fault =
  | { readonly kind: "delay"; readonly ms: number }
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    };

/** Stands before a real API server, speaks TLS on both sides, and treats requests as a test wants. */
export class FaultyApi {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private readonly agent: Agent;
  /** Decides what happens to a request. */
  fault: (request: { readonly method: string; readonly path: string }) => Fault | undefined = () => undefined;
  /** Requests that were seen, by method and path. */
  readonly seen: string[] = [];

  private constructor(
    private readonly target: string,
    authority: TestAuthority,
    identity: Pair,
  ) {
    const own = authority.server("faulty", { dnsNames: ["localhost"], addresses: ["127.0.0.1"] });
    this.agent = new Agent({
      ca: authority.certificate,
      cert: identity.certificate,
      key: identity.key,
      keepAlive: true,
    });
    this.server = createServer({ key: own.key, cert: own.certificate }, (incoming, answer) =>
      this.handle(incoming, answer),
    );
    this.server.on("connection", (socket: Socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket)).on("error", () => undefined);
    });
    this.server.on("tlsClientError", () => undefined);
  }

  /** `identity` is who the real server takes all callers for. */
  static async start(target: string, authority: TestAuthority, identity: Pair): Promise<FaultyApi> {
    const faulty = new FaultyApi(target, authority, identity);
    await new Promise<void>((resolve) => faulty.server.listen(0, "127.0.0.1", resolve));
    return faulty;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Cuts every connection in the middle of whatever it carries. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    this.agent.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private handle(incoming: IncomingMessage, answer: ServerResponse): void {
    const { method = "GET", url: path = "/" } = incoming;
    this.seen.push(`${method} ${path}`);
    const fault = this.fault({ method, path });
    if (fault === undefined) return this.pass(incoming, answer);
    if (fault.kind === "delay") {
      setTimeout(() => this.pass(incoming, answer), fault.ms);
      return;
    }
    incoming.resume();
    const words = fault.body ?? `{"kind":"Status","status":"Failure","code":${fault.status}}`;
    answer.writeHead(fault.status, fault.headers).end(words);
  }

  private pass(incoming: IncomingMessage, answer: ServerResponse): void {
    const { method, url: path, headers } = incoming;
    const { host: _host, connection: _connection, ...rest } = headers;
    const { hostname, port } = new URL(this.target);
    const onward = request({ hostname, port, method, path, headers: rest, agent: this.agent }, (back) => {
      answer.writeHead(back.statusCode ?? 502, back.headers);
      // A quiet watch has begun although it says nothing yet.
      answer.flushHeaders();
      back.pipe(answer);
      back.on("error", () => answer.destroy());
    });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    incoming.pipe(onward);
  }
}
