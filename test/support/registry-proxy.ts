import { createServer as createPlain, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTls, request } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TestAuthority } from "./control-plane-pki.ts";
import { REGISTRY_AUTHORIZATION, type TestRegistry } from "./registry.ts";

/** What happens to a request; undefined lets it pass. */
export type RegistryFault =
  | { readonly kind: "status"; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** Half of what was asked for, then the connection is cut; nothing of the other half ever comes. */
  | { readonly kind: "cut" }
  /** Half, then nothing more. */
  | { readonly kind: "stall" }
  /** No answer at all. */
  | { readonly kind: "silent" }
  | { readonly kind: "slow"; readonly bytesPerSecond: number }
  /** The right length with other content. */
  | { readonly kind: "corrupt" }
  /** A body without a length and without an end. */
  | { readonly kind: "endless" }
  /** The same thing at another address. */
  | { readonly kind: "redirect" };

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
}

const ELSEWHERE = "/elsewhere";
const TICK_MS = 20;

/** Stands before a registry that speaks TLS, and treats requests as a test wants. */
export class RegistryProxy {
  /** Decides what happens to a request. */
  fault: (request: SeenRequest) => RegistryFault | undefined = () => undefined;
  /** Set: requests need this token, which `/token` gives to those with the password. */
  token: string | undefined;
  readonly seen: SeenRequest[] = [];
  /** Bytes of blobs that were sent. */
  sentBytes = 0;
  /** Blobs that are being sent. */
  sending = 0;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly registry: TestRegistry,
    private readonly authority: TestAuthority | undefined,
  ) {
    const pair = authority?.server("proxy", { dnsNames: ["localhost"], addresses: ["127.0.0.1"] });
    const handle = (incoming: IncomingMessage, answer: ServerResponse): void => this.handle(incoming, answer);
    this.server = pair ? createTls({ key: pair.key, cert: pair.certificate }, handle) : createPlain(handle);
    this.server.on("connection", (socket: Socket) => {
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket)).on("error", () => undefined);
    });
    this.server.on("tlsClientError", () => undefined);
  }

  /** With an authority it speaks TLS and hands credentials on; without, plain HTTP, and everybody is let in. */
  static async start(registry: TestRegistry, authority?: TestAuthority): Promise<RegistryProxy> {
    const proxy = new RegistryProxy(registry, authority);
    await new Promise<void>((resolve) => proxy.server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Lets everything pass from now on; what has begun stays as it is. */
  heal(): void {
    this.fault = () => undefined;
    this.token = undefined;
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private get url(): string {
    return `${this.authority === undefined ? "http" : "https"}://${this.host}`;
  }

  private handle(incoming: IncomingMessage, answer: ServerResponse): void {
    const { method = "GET", url: path = "/" } = incoming;
    incoming.resume();
    answer.on("error", () => undefined);
    this.seen.push({ method, path });
    if (path.startsWith("/token")) {
      const answered = JSON.stringify({ token: this.token, access_token: this.token });
      answer.writeHead(200, { "content-type": "application/json" }).end(answered);
      return;
    }
    if (this.token !== undefined && incoming.headers.authorization !== `Bearer ${this.token}`) {
      const challenge = `Bearer realm="${this.url}/token",service="test",scope="repository:x:pull"`;
      answer.writeHead(401, { "www-authenticate": challenge }).end();
      return;
    }
    const fault = this.fault({ method, path });
    if (fault?.kind === "silent") return;
    if (fault?.kind === "status") {
      answer.writeHead(fault.status, fault.headers).end(`{"errors":[{"code":"TEST","message":"on purpose"}]}`);
      return;
    }
    if (fault?.kind === "redirect" && !path.startsWith(ELSEWHERE)) {
      answer.writeHead(307, { location: `${this.url}${ELSEWHERE}${path}` }).end();
      return;
    }
    this.pass(incoming, answer, fault);
  }

  private pass(incoming: IncomingMessage, answer: ServerResponse, fault: RegistryFault | undefined): void {
    const { method, headers, url = "/" } = incoming;
    const { host: _host, connection: _connection, authorization, ...rest } = headers;
    const isElsewhere = url.startsWith(ELSEWHERE);
    const isTrusted = this.authority === undefined || this.token !== undefined || isElsewhere;
    const known = isTrusted ? REGISTRY_AUTHORIZATION : authorization;
    const [hostname = "", port = ""] = this.registry.host.split(":");
    const path = isElsewhere ? url.slice(ELSEWHERE.length) : url;
    const all = { ...rest, ...(known !== undefined && { authorization: known }) };
    const onward = request({ hostname, port, method, path, headers: all, agent: this.registry.agent }, (back) => {
      const isBlob = method === "GET" && path.includes("/blobs/");
      // A response whose connection was lost early may never report its own end.
      const { socket } = incoming;
      if (socket.destroyed) return void back.destroy();
      let isOpen = true;
      const ended = (): void => {
        socket.off("close", ended);
        if (isOpen && isBlob) this.sending--;
        isOpen = false;
        onward.destroy();
      };
      if (isBlob) this.sending++;
      socket.on("close", ended);
      answer.on("close", ended);
      void this.send(back, answer, { fault, isBlob }).catch(() => answer.destroy());
    });
    onward.on("error", () => answer.destroy()).end();
  }

  private async send(
    back: IncomingMessage,
    answer: ServerResponse,
    { fault, isBlob }: { fault: RegistryFault | undefined; isBlob: boolean },
  ): Promise<void> {
    const { "content-length": length = "0", ...headers } = back.headers;
    const isEndless = fault?.kind === "endless";
    answer.writeHead(back.statusCode ?? 502, isEndless ? headers : back.headers);
    const write = async (bytes: Buffer): Promise<void> => {
      if (isBlob) this.sentBytes += bytes.length;
      if (answer.write(bytes) || answer.destroyed) return;
      await new Promise<void>((resolve) => {
        const done = (): void => {
          answer.off("drain", done).off("close", done);
          resolve();
        };
        answer.on("drain", done).on("close", done);
      });
    };
    const whole = wholeLength(back);
    let at = whole - Number(length);
    const half = Math.floor(whole / 2);
    for await (const chunk of back as AsyncIterable<Buffer>) {
      if (fault?.kind === "cut" || fault?.kind === "stall") {
        const rest = chunk.subarray(0, Math.max(0, half - at));
        await write(rest);
        at += chunk.length;
        if (rest.length === chunk.length) continue;
        if (fault.kind === "cut") answer.destroy();
        return;
      }
      if (fault?.kind === "corrupt") for (let i = 0; i < chunk.length; i += 4096) chunk[i] = (chunk[i] ?? 0) ^ 0xff;
      if (fault?.kind === "slow") await this.slowly(chunk, fault, { answer, write });
      else await write(chunk);
    }
    const more = Buffer.alloc(64 * 1024);
    while (isEndless && !answer.destroyed) {
      await write(more);
      await pause(TICK_MS);
    }
    answer.end();
  }

  /** As slowly as asked, until the fault is taken away. */
  private async slowly(
    chunk: Buffer,
    { bytesPerSecond }: { readonly bytesPerSecond: number },
    { answer, write }: { answer: ServerResponse; write(bytes: Buffer): Promise<void> },
  ): Promise<void> {
    const step = Math.max(1, Math.round((bytesPerSecond * TICK_MS) / 1000));
    const isSlow = (): boolean => this.fault({ method: "GET", path: "/v2/x/blobs/x" })?.kind === "slow";
    for (let at = 0; at < chunk.length && !answer.destroyed; ) {
      const size = isSlow() ? step : chunk.length;
      await write(chunk.subarray(at, at + size));
      at += size;
      if (isSlow()) await pause(TICK_MS);
    }
  }
}

/** The length of the whole blob, also where a part of it was asked for. */
function wholeLength({ headers }: IncomingMessage): number {
  return Number(headers["content-range"]?.split("/")[1] ?? headers["content-length"] ?? 0);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
