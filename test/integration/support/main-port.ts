import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { request } from "node:https";
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

/** The main port of an agent, as one client sees it. */
export class MainPort {
  constructor(
    readonly port: number,
    readonly identity: Identity | undefined,
  ) {}

  ask(path: string, method = "GET", headers: Record<string, string> = {}): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const call = request({
        ...{ host: "127.0.0.1", port: this.port, path, method, headers, agent: false, timeout: LIMIT_MS },
        ...{ rejectUnauthorized: false, ...this.identity },
      });
      call.on("response", (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => (body += text));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }));
        response.on("error", reject);
      });
      call.on("timeout", () => call.destroy(new Error(`no answer within ${LIMIT_MS} ms`)));
      call.on("error", reject).end();
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
        ...{ host: "127.0.0.1", port: this.port, path, method, agent: false, rejectUnauthorized: false },
        ...{ headers: { Connection: "Upgrade", "Content-Length": "0", ...headers }, ...this.identity },
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
      ...{ Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": "v4.channel.k8s.io" },
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
  readonly channels = new Map<number, string>();
  readonly closed: Promise<void>;
  private bytes: Buffer;

  constructor(private readonly made: Upgrade) {
    this.bytes = made.head;
    made.socket.on("data", (chunk: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, chunk]);
      this.take();
    });
    this.take();
    this.closed = new Promise((resolve) => made.socket.on("close", () => resolve()));
  }

  text(channel: number): string {
    return this.channels.get(channel) ?? "";
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
      if (this.bytes.length < 2) return;
      const code = (this.bytes[0] ?? 0) & 0x0f;
      let length = (this.bytes[1] ?? 0) & 0x7f;
      let at = 2;
      if (length === 126) {
        if (this.bytes.length < 4) return;
        length = this.bytes.readUInt16BE(2);
        at = 4;
      } else if (length === 127) {
        if (this.bytes.length < 10) return;
        length = Number(this.bytes.readBigUInt64BE(2));
        at = 10;
      }
      if (this.bytes.length < at + length) return;
      const payload = this.bytes.subarray(at, at + length);
      this.bytes = this.bytes.subarray(at + length);
      if (code === 8) this.made.socket.end();
      else if (code <= 2 && payload.length > 0) {
        const channel = payload[0] ?? 0;
        this.channels.set(channel, this.text(channel) + payload.subarray(1).toString("utf8"));
      }
    }
  }
}
