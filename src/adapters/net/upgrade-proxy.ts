import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { endSoon, keepReading, unread } from "./half-close.ts";

/** A client that asked for an upgrade: its request, its connection, and what it sent right behind the request. */
export interface UpgradingClient {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** Headers of the client's connection to the agent, not passed on to the backend. */
const NOT_PASSED = new Set(["host", "authorization", "cookie"]);
/** A token as a WebSocket subprotocol: for the agent, never for the backend. */
const TOKEN_PROTOCOL = /^\s*base64url\.bearer\.authorization\.k8s\.io\./;

export interface ProxyOptions extends Abortable {
  /** Milliseconds after which a client that does not read what the backend sent is disconnected. */
  readonly stallMs: number;
  readonly connection?: Socket | undefined;
}

/**
 * Repeats the client's upgrade at `target` and, if that accepts, copies bytes both ways; a silent connection has no time
 * limit. A refusal is passed on with its body; a backend that cannot be reached is a 500. Resolves when both connections
 * are closed; an abort closes them. `connection` is an existing one to the target.
 */
export function proxyUpgrade(
  client: UpgradingClient,
  target: URL,
  { signal, stallMs, connection }: ProxyOptions,
): Promise<void> {
  return new Promise((resolve) => {
    const { socket } = client;
    const { method = "GET" } = client.request;
    const ask = target.protocol === "https:" ? httpsRequest : httpRequest;
    const call = ask({
      host: target.hostname.replace(/^\[|\]$/g, ""),
      port: target.port,
      path: target.pathname + target.search,
      method,
      headers: passedHeaders(client.request, target),
      // The runtime's own server on this host; its certificate is self-signed, as in Kubernetes.
      rejectUnauthorized: false,
      ...(connection === undefined ? { agent: false } : { createConnection: () => connection }),
    });
    const cut = (): void => {
      call.destroy();
      socket.destroy();
    };
    signal.addEventListener("abort", cut, { once: true });
    socket.on("close", () => {
      signal.removeEventListener("abort", cut);
      call.destroy();
      resolve();
    });
    call.on("error", (error) => {
      if (!socket.destroyed) socket.end(answerHead(500, "Internal Server Error") + messageOf(error));
    });
    call.on("response", (answer) => refuse(socket, answer));
    call.on("upgrade", (answer, backend, head) => {
      join(client, { answer, backend, head });
      endStalled(socket, backend, stallMs);
    });
    call.end();
    if (signal.aborted || socket.destroyed) cut();
  });
}

interface UpgradedBackend {
  readonly answer: IncomingMessage;
  readonly backend: Socket;
  readonly head: Buffer;
}

function join({ socket, head }: UpgradingClient, { answer, backend, head: first }: UpgradedBackend): void {
  keepReading(backend);
  // Its close follows, and what it sent before still reaches the client.
  backend.on("error", () => {
    const rest = unread(backend);
    if (rest !== undefined && socket.writable) socket.write(rest);
  });
  socket.on("error", () => backend.destroy());
  // Pipes leave the other side open when one is reset.
  backend.on("close", () => endSoon(socket));
  socket.on("close", () => endSoon(backend));
  if (socket.destroyed) return void backend.destroy();
  backend.setTimeout(0);
  backend.setNoDelay(true);
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headerLines(answer.rawHeaders)}\r\n`);
  if (first.length > 0) socket.write(first);
  if (head.length > 0) backend.write(head);
  socket.pipe(backend);
  backend.pipe(socket);
}

/** Closes a connection whose client does not take what the backend sent: the pipe pauses the backend meanwhile. */
function endStalled(socket: Duplex, backend: Socket, stallMs: number): void {
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => clearTimeout(timer);
  backend.on("pause", () => {
    stop();
    timer = setTimeout(() => socket.destroy(), stallMs);
    timer.unref();
  });
  socket.on("drain", stop).on("close", stop);
}

/** Passes on the answer of the backend; its end is the end of the connection. */
function refuse(socket: Duplex, answer: IncomingMessage): void {
  answer.on("error", () => socket.destroy());
  const headers = answer.rawHeaders.filter((_, index, all) => {
    const name = all[index - (index % 2)]?.toLowerCase() ?? "";
    return name !== "connection" && name !== "transfer-encoding" && name !== "keep-alive";
  });
  socket.write(
    `HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${headerLines(headers)}Connection: close\r\n\r\n`,
  );
  answer.pipe(socket);
}

function answerHead(status: number, words: string): string {
  return `HTTP/1.1 ${status} ${words}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n`;
}

function headerLines(raw: readonly string[]): string {
  let lines = "";
  for (let at = 0; at + 1 < raw.length; at += 2) lines += `${raw[at]}: ${raw[at + 1]}\r\n`;
  return lines;
}

/** The client's headers in their order and case, without its credentials. */
function passedHeaders({ rawHeaders, method }: IncomingMessage, target: URL): string[] {
  const headers = ["Host", target.host];
  let hasLength = false;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    const lower = name.toLowerCase();
    if (NOT_PASSED.has(lower)) continue;
    if (lower === "content-length" || lower === "transfer-encoding") hasLength = true;
    let value = rawHeaders[at + 1] ?? "";
    if (lower === "sec-websocket-protocol") value = withoutTokens(value);
    if (lower !== "sec-websocket-protocol" || value !== "") headers.push(name, value);
  }
  // Without it a chunked body would be announced, and its end would be the first bytes of the upgraded stream.
  if (!hasLength && method !== "GET") headers.push("Content-Length", "0");
  return headers;
}

function withoutTokens(protocols: string): string {
  return protocols
    .split(",")
    .filter((protocol) => !TOKEN_PROTOCOL.test(protocol))
    .map((protocol) => protocol.trim())
    .join(", ");
}
