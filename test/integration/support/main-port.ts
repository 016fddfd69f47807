import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { connect as connectTcp } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { connect, type TLSSocket } from "node:tls";
import { certificate, newKey } from "../../../src/adapters/kubeapi/certificates.ts";
import { SLOWNESS } from "./until.ts";

const HOUR_MS = 3_600_000;
const LIMIT_MS = 30_000 * SLOWNESS;

/** A certificate and its key, as Node's TLS takes them. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

/** An authority for clients; its file is for `--client-ca-file`. */
export class ClientAuthority {
  readonly path: string;
  private readonly subject: { readonly commonName: string };
  private readonly keyPem = newKey();
  private readonly time = { notBefore: Date.now() - HOUR_MS, notAfter: Date.now() + HOUR_MS };

  constructor(directory: string, name: string) {
    this.subject = { commonName: name };
    this.path = join(directory, `${name}.pem`);
    const content = { subject: this.subject, ...this.time, usages: [], isAuthority: true };
    writeFileSync(this.path, certificate(this.keyPem, content));
  }

  issue(commonName: string): Identity {
    const key = newKey();
    const content = { subject: { commonName }, ...this.time, usages: ["client" as const] };
    return { key, cert: certificate(key, content, { subject: this.subject, keyPem: this.keyPem }) };
  }
}

export interface Reply {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

interface Sent {
  readonly path: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** The main port of an agent, as one client sees it. */
export class MainPort {
  constructor(
    readonly port: number,
    readonly identity: Identity | undefined,
  ) {}

  ask(path: string, method = "GET", headers: Record<string, string> = {}): Promise<Reply> {
    return this.send({ path, method, headers, body: "" });
  }

  put(path: string, body: string): Promise<Reply> {
    return this.send({ path, method: "PUT", headers: {}, body });
  }

  /** Sends bytes that are no TLS, and waits for the end of the connection. */
  garbage(): Promise<void> {
    return new Promise((resolve) => {
      const socket = connectTcp(this.port, "127.0.0.1", () => socket.end("GET / HTTP/1.1\r\n\r\n"));
      socket
        .on("error", () => undefined)
        .on("close", () => resolve())
        .resume();
    });
  }

  private send({ path, method, headers, body }: Sent): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const call = request({
        host: "127.0.0.1",
        port: this.port,
        path,
        method,
        headers,
        agent: false,
        timeout: LIMIT_MS,
        rejectUnauthorized: false,
        ...this.identity,
      });
      call.on("response", (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("end", () => {
          resolve({ status: response.statusCode ?? 0, body: text, headers: response.headers });
        });
        response.on("error", reject);
      });
      call.on("timeout", () => call.destroy(new Error(`no answer within ${LIMIT_MS} ms`)));
      call.on("error", reject).end(body);
    });
  }

  /** A bare TLS connection. */
  connect(): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port: this.port, rejectUnauthorized: false, ...this.identity });
      socket.on("error", reject).on("secureConnect", () => resolve(socket));
    });
  }

  /** Asks for an upgrade; the connection, or the answer that refuses it. */
  upgrade(path: string, headers: Record<string, string>, method = "GET"): Promise<Upgrade | Reply> {
    return new Promise((resolve, reject) => {
      const call = request({
        host: "127.0.0.1",
        port: this.port,
        path,
        method,
        agent: false,
        rejectUnauthorized: false,
        headers: { Connection: "Upgrade", "Content-Length": "0", ...headers },
        ...this.identity,
      });
      call.on("upgrade", (response, socket, head) => {
        socket.on("error", () => socket.destroy());
        resolve({ socket, head, protocol: String(response.headers["sec-websocket-protocol"] ?? "") });
      });
      call.on("response", (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => (body += text));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }));
      });
      call.on("error", reject).end();
    });
  }

  /** A WebSocket with the channel protocol v4. */
  async webSocket(path: string): Promise<WebSocketChannels> {
    const made = await this.upgrade(path, {
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
      "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
    });
    if ("status" in made) throw new Error(`no upgrade: ${made.status} ${made.body}`);
    return new WebSocketChannels(made);
  }
}

export interface Upgrade {
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly protocol: string;
}

/** Kubernetes' channels over a WebSocket: the first byte of each message is the channel. */
export class WebSocketChannels {
  private readonly channels = new Map<number, Buffer>();
  readonly closed: Promise<void>;
  private unread: Buffer;

  constructor(private readonly made: Upgrade) {
    this.unread = made.head;
    made.socket.on("data", (chunk: Buffer) => {
      this.unread = Buffer.concat([this.unread, chunk]);
      this.take();
    });
    this.take();
    this.closed = new Promise((resolve) => made.socket.on("close", () => resolve()));
  }

  text(channel: number): string {
    return this.bytes(channel).toString("utf8");
  }

  bytes(channel: number): Buffer {
    return this.channels.get(channel) ?? Buffer.alloc(0);
  }

  send(channel: number, text: string): void {
    const payload = Buffer.concat([Buffer.from([channel]), Buffer.from(text)]);
    const mask = randomBytes(4);
    const masked = payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0));
    const head =
      payload.length < 126 ? [0x82, 0x80 | payload.length] : [0x82, 0xfe, payload.length >> 8, payload.length & 0xff];
    this.made.socket.write(Buffer.concat([Buffer.from(head), mask, masked]));
  }

  destroy(): void {
    this.made.socket.destroy();
  }

  private take(): void {
    for (;;) {
      if (this.unread.length < 2) return;
      const code = (this.unread[0] ?? 0) & 0x0f;
      let length = (this.unread[1] ?? 0) & 0x7f;
      let at = 2;
      if (length === 126) {
        if (this.unread.length < 4) return;
        length = this.unread.readUInt16BE(2);
        at = 4;
      } else if (length === 127) {
        if (this.unread.length < 10) return;
        length = Number(this.unread.readBigUInt64BE(2));
        at = 10;
      }
      if (this.unread.length < at + length) return;
      const payload = this.unread.subarray(at, at + length);
      this.unread = this.unread.subarray(at + length);
      if (code === 8) this.made.socket.end();
      else if (code <= 2 && payload.length > 0) {
        const channel = payload[0] ?? 0;
        this.channels.set(channel, Buffer.concat([this.bytes(channel), payload.subarray(1)]));
      }
    }
  }
}
