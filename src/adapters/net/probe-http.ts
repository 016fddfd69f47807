import { isIP } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Abortable, abortCalls, TimeLimitError } from "../../lib/abort.ts";
import { errnoOf, messageOf } from "../../lib/errors.ts";
import { type HttpRequest, hostAndPort } from "../../model/http-action.ts";
import { type HttpAnswer, HttpAnswerReader } from "./http-answer.ts";
import { dialError, dialTimeout, ProbeNetError } from "./probe-error.ts";
import { type Link, type LinkEnds, openLink, type TcpAddress } from "./probe-link.ts";

/** How much of a body is read: a probe's answer is only shown, never used. */
const BODY_LIMIT = 10 * 1024;
/**
 * One GET over a connection of its own, without verifying certificates, for probes and hooks. The status line decides:
 * a body that is cut off, late or wrong is no failure. Rejects with `ProbeNetError` or the signal's reason.
 */
export function httpGet(request: HttpRequest, { signal }: Abortable): Promise<HttpAnswer> {
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  return new Promise((resolve, reject) => {
    const bytes = requestBytes(request);
    const calls = abortCalls(signal);
    const reader = new HttpAnswerReader(BODY_LIMIT);
    let isConnected = false;
    let isOver = false;
    const finish = (error?: unknown): void => {
      if (isOver) return;
      isOver = true;
      calls.delete(onAbort);
      link.close();
      const { answer } = reader;
      if (answer !== undefined) resolve(answer);
      else reject(error === signal.reason && signal.aborted ? error : worded(request, isConnected, error));
    };
    const onAbort = (): void => {
      finish(
        signal.reason instanceof TimeLimitError && !isConnected
          ? dialTimeout(hostAndPort(request.host, request.port))
          : signal.reason,
      );
    };
    const link = open(request, {
      connected: () => {
        isConnected = true;
        link.write(bytes);
      },
      took: (text) => {
        try {
          if (reader.take(text)) finish();
        } catch (error) {
          finish(error);
        }
      },
      failed: finish,
      // A side that has said all closes; whatever came by then is the answer.
      closed: () => {
        try {
          if (!isOver) reader.end();
          finish();
        } catch (error) {
          finish(error);
        }
      },
    });
    calls.add(onAbort);
  });
}

function open(request: HttpRequest, ends: LinkEnds): Link {
  return request.scheme === "https" ? openTls(request, ends) : openLink(request, ends);
}

function openTls({ host, port }: TcpAddress, ends: LinkEnds): Link {
  const servername = isIP(host) === 0 ? host : "";
  const socket = connectTls({ host, port, servername, rejectUnauthorized: false });
  socket.on("error", ends.failed);
  socket.on("secureConnect", ends.connected);
  socket.on("data", (chunk: Buffer) => ends.took(chunk.toString("latin1")));
  socket.on("close", ends.closed);
  return { write: (bytes) => void socket.write(bytes), close: () => void socket.destroy() };
}

/** A probe sends the same request again and again. */
const encoded = new WeakMap<HttpRequest, Buffer>();

function requestBytes(request: HttpRequest): Buffer {
  const known = encoded.get(request);
  if (known !== undefined) return known;
  const bytes = encodeRequest(request);
  encoded.set(request, bytes);
  return bytes;
}

/**
 * Returns the bytes of a GET. Pod authors choose target, host and headers, so the result is checked as bytes, after every
 * encoding: exactly one line for the request, one for each header, and nothing that ends a line within one.
 */
export function encodeRequest({ target, hostHeader, headers }: HttpRequest): Buffer {
  const lines = [`GET ${target} HTTP/1.1`, `Host: ${hostHeader}`];
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  lines.push("Connection: close");
  const parts = lines.map((line) => Buffer.from(line, "utf8"));
  if (parts.some((part) => part.some((byte) => byte === CR || byte === LF || byte === 0))) {
    throw new ProbeNetError("Malformed", "invalid request: a line holds a line end or a zero byte");
  }
  const requestLine = parts[0]?.toString("latin1") ?? "";
  if (!/^GET [\x21-\x7e]+ HTTP\/1\.1$/.test(requestLine)) {
    throw new ProbeNetError("Malformed", "invalid request: the path must be printable ASCII without spaces");
  }
  const end = Buffer.from("\r\n");
  return Buffer.concat([...parts.flatMap((part) => [part, end]), end]);
}

const CR = 13;
const LF = 10;

function worded(request: HttpRequest, isConnected: boolean, error: unknown): ProbeNetError {
  if (error instanceof ProbeNetError) return error;
  const errno = errnoOf(error);
  const text = messageOf(error);
  if (request.scheme === "https" && /wrong version number|packet length too long|http request/i.test(text)) {
    return new ProbeNetError("PlainAnswer", "http: server gave HTTP response to HTTPS client", { cause: error });
  }
  if (request.scheme === "https" && !isConnected && (errno?.startsWith("ERR_SSL") === true || errno === "EPROTO")) {
    return new ProbeNetError("Tls", `remote error: tls: ${text}`, { cause: error });
  }
  if (!isConnected && errno !== undefined) return dialError(hostAndPort(request.host, request.port), error);
  if (errno === "ECONNRESET") {
    return new ProbeNetError("Broken", "read: connection reset by peer", { cause: error });
  }
  return new ProbeNetError(/malformed|too/.test(text) ? "Malformed" : "Broken", text, { cause: error });
}
