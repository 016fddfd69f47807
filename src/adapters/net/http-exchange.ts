import { type IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { AbortedError, isAborted, manyListeners } from "../../lib/abort.ts";
import type { EarlyDial, EarlyDials } from "./early-dial.ts";
import { endSoon } from "./half-close.ts";
import type { Dispatch } from "./http-dispatch.ts";
import { BodyTooLarge, type ClientCertificate, type RouteAnswer, type RouteRequest, textAnswer } from "./http-route.ts";
import { type ChunkFrames, pushBody } from "./push-body.ts";
import { proxyUpgrade } from "./upgrade-proxy.ts";

/** What all exchanges of one listener share. */
export interface ExchangeContext {
  readonly dispatch: Dispatch;
  /** Aborts when the listener closes. */
  readonly leaving: AbortSignal;
  readonly dials: EarlyDials;
  /** Milliseconds after which a client that does not read is disconnected. */
  readonly patience: ReadPatience;
  readonly frames: ChunkFrames;
  /** Called at each request; what it returns is called at the end of the answer. */
  observe?(method: string, target: string): () => void;
  peerOf?(request: IncomingMessage): ClientCertificate | undefined;
}

/** An `Upgrade` request after its parser: the socket, and what was read past the head. */
export interface Upgrade {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** Answers one request. Rejects with the error of a handler, after the client got a 500. */
export async function exchange(
  context: ExchangeContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const left = manyListeners();
  const leave = (): void => left.abort(new AbortedError("the client left"));
  request.on("error", leave);
  response.on("error", leave).on("close", leave);
  // An answer that waits behind another one of the connection has no socket yet, and does not close with it.
  const { socket } = request;
  socket.on("close", leave);
  try {
    await during(context, { request, left, leave }, async () => {
      const { answer, failure } = await judge(context, request, left);
      request.resume();
      const sent = answer.upgradeTo === undefined ? answer : textAnswer(500, "Upgrade request required\n");
      if (!left.signal.aborted) await send(response, sent, { ...context, signal: left.signal });
      if (failure !== undefined) throw failure;
    });
  } finally {
    socket.off("close", leave);
  }
}

/** Answers an upgrade request: proxied if the route says so, else answered like any other and closed. */
export async function exchangeUpgrade(
  context: ExchangeContext,
  request: IncomingMessage,
  { socket, head }: Upgrade,
): Promise<void> {
  const left = manyListeners();
  const leave = (): void => left.abort(new AbortedError("the client left"));
  socket.on("error", leave).on("close", leave);
  let early: EarlyDial | undefined;
  const expectUpgrade = (): void => {
    early ??= context.dials.begin();
  };
  try {
    await during(context, { request, left, leave }, async () => {
      const { answer, failure } = await judge(context, request, { signal: left.signal, expectUpgrade });
      if (left.signal.aborted) return;
      if (answer.upgradeTo !== undefined) {
        if (answer.until?.aborted === true) leave();
        answer.until?.addEventListener("abort", leave, { once: true });
        const target = new URL(answer.upgradeTo);
        context.dials.note(target);
        const { signal } = left;
        const { stallMs } = context.patience;
        await proxyUpgrade({ request, socket, head }, target, { signal, stallMs, connection: early?.take(target) });
        return;
      }
      const response = new ServerResponse(request);
      response.on("error", leave);
      // The connection has no parser any more, so no request can follow.
      response.shouldKeepAlive = false;
      response.assignSocket(socket as Parameters<ServerResponse["assignSocket"]>[0]); // reason: of an HTTP server it is one
      response.on("finish", () => endSoon(socket));
      await send(response, answer, { ...context, signal: left.signal });
      if (failure !== undefined) throw failure;
    });
  } finally {
    early?.drop();
  }
}

interface Course {
  readonly request: IncomingMessage;
  readonly left: AbortController;
  leave(): void;
}

async function during(context: ExchangeContext, { request, left, leave }: Course, work: () => Promise<void>) {
  const { leaving } = context;
  const observed = context.observe?.(request.method ?? "GET", request.url ?? "/");
  if (leaving.aborted) leave();
  leaving.addEventListener("abort", leave);
  try {
    await work();
  } catch (error) {
    if (isAborted(error, left.signal)) return;
    request.destroy();
    throw error;
  } finally {
    leaving.removeEventListener("abort", leave);
    observed?.();
  }
}

async function judge(
  { dispatch, peerOf }: ExchangeContext,
  request: IncomingMessage,
  { signal, expectUpgrade }: Pick<RouteRequest, "signal" | "expectUpgrade">,
): Promise<{ answer: RouteAnswer; failure?: unknown }> {
  try {
    const answer = await dispatch({
      method: request.method ?? "GET",
      target: request.url ?? "/",
      headers: request.headers as Readonly<Record<string, string | undefined>>, // reason: only set-cookie is a list
      peer: peerOf?.(request),
      readBody: (limit) => readBody(request, limit),
      signal,
      expectUpgrade,
    });
    return { answer };
  } catch (failure) {
    if (failure instanceof BodyTooLarge) return { answer: textAnswer(413, "the request body is too large\n") };
    const answer = textAnswer(500, "Internal Error: see the agent's log\n");
    return isAborted(failure, signal) ? { answer } : { answer, failure };
  }
}

async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = chunk as Buffer; // reason: no encoding is set, so chunks are buffers
    size += bytes.length;
    if (size > limit) throw new BodyTooLarge("TooLarge", `over ${limit} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

/** Milliseconds that a client may take to read. */
export interface ReadPatience {
  /** An answer that is sent as a whole. */
  readonly answerMs: number;
  /** The next piece of a stream. */
  readonly stallMs: number;
}

interface SendOptions extends Pick<ExchangeContext, "patience" | "frames"> {
  readonly signal: AbortSignal;
}

async function send(response: ServerResponse, answer: RouteAnswer, options: SendOptions): Promise<void> {
  const { signal, patience, frames } = options;
  const head = { "Content-Type": answer.type ?? "text/plain; charset=utf-8", ...answer.headers };
  const { body } = answer;
  const isWhole = typeof body === "string" || body instanceof Uint8Array;
  const stalled = new StallTimer(response, isWhole ? patience.answerMs : patience.stallMs);
  // Also for the end of the answer, of which nothing is awaited.
  response.on("finish", () => stalled.stop()).on("close", () => stalled.stop());
  if (isWhole) {
    response.writeHead(answer.status, { ...head, "Content-Length": Buffer.byteLength(body) });
    stalled.start();
    response.end(body);
    return;
  }
  response.writeHead(answer.status, head);
  response.flushHeaders();
  if (answer.until !== undefined) endAfter(response, answer.until);
  try {
    if ("sendTo" in body) {
      const [onFull, onRoom] = [() => stalled.start(), () => stalled.stop()];
      await pushBody(response, body, { frames, signal, onFull, onRoom });
    } else await sendPieces(response, body, { signal, stalled });
  } catch (error) {
    // The client must not take what it has for the whole, nor wait for more.
    response.destroy();
    throw error;
  }
  if (signal.aborted) return;
  stalled.start();
  response.end();
}

/** Sends a streamed body, piece by piece. */
async function sendPieces(
  response: ServerResponse,
  pieces: AsyncIterable<string | Uint8Array>,
  { signal, stalled }: { readonly signal: AbortSignal; readonly stalled: StallTimer },
): Promise<void> {
  for await (const chunk of pieces) {
    if (signal.aborted) return;
    if (isCopied(chunk) && response.write(typeof chunk === "string" ? chunk : Buffer.from(chunk))) continue;
    stalled.start();
    await (isCopied(chunk) ? drained(response, signal) : written(response, chunk, signal));
    stalled.stop();
  }
}

/** A stream that is over has this long, in milliseconds, to reach a client that reads. */
const LAST_MS = 1000;

/** Disconnects the client soon after the abort: the stream may be waiting for it to read. */
function endAfter(response: ServerResponse, until: AbortSignal): void {
  let timer: NodeJS.Timeout | undefined;
  const end = (): void => {
    timer = setTimeout(() => response.destroy(), LAST_MS);
    timer.unref();
  };
  until.addEventListener("abort", end, { once: true });
  response.on("close", () => {
    clearTimeout(timer);
    until.removeEventListener("abort", end);
  });
  if (until.aborted) end();
}

/** Disconnects a client that does not take what is written to it. */
class StallTimer {
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly response: ServerResponse,
    private readonly limitMs: number,
  ) {}

  start(): void {
    this.stop();
    if (this.response.closed || this.response.writableFinished) return;
    this.timer = setTimeout(() => this.response.destroy(), this.limitMs);
    this.timer.unref();
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}

/** Chunks below this size are copied: that costs less than waiting until they are sent. */
const SMALL = 64 * 1024;

/** True if the memory of a chunk may be reused as soon as it was handed over. */
function isCopied(chunk: string | Uint8Array): boolean {
  return typeof chunk === "string" || chunk.length < SMALL;
}

/** Resolves when the client has read so much that more may be written, or has disconnected. */
function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return untilRoom(response, signal, (done) => void response.on("drain", done));
}

/**
 * Resolves when the chunk's memory may be reused or the client has disconnected, and no faster than the client reads.
 * The callback of `write` alone is not enough: on Node 26 it comes before the bytes are sent.
 */
function written(response: ServerResponse, chunk: Uint8Array | string, signal: AbortSignal): Promise<void> {
  return untilRoom(response, signal, (done) => {
    const hasRoom = response.write(chunk, () => {
      if (hasRoom) done();
    });
    if (!hasRoom) response.on("drain", done);
  });
}

/** Resolves when `begin` calls `done`, also as a listener of `drain`, or when the signal aborts. */
function untilRoom(response: ServerResponse, signal: AbortSignal, begin: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      signal.removeEventListener("abort", done);
      response.off("drain", done);
      resolve();
    };
    signal.addEventListener("abort", done, { once: true });
    begin(done);
  });
}
