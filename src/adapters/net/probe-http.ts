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
        link.write(requestText(request));
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
  return { write: (text) => void socket.write(text, "latin1"), close: () => void socket.destroy() };
}

/** A probe sends the same request again and again. */
const texts = new WeakMap<HttpRequest, string>();

function requestText(request: HttpRequest): string {
  const known = texts.get(request);
  if (known !== undefined) return known;
  const { target, hostHeader, headers } = request;
  let text = `GET ${target} HTTP/1.1\r\nHost: ${hostHeader}\r\n`;
  for (const [name, value] of headers) text += `${name}: ${value}\r\n`;
  text += "Connection: close\r\n\r\n";
  texts.set(request, text);
  return text;
}

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
