import type { Readable } from "node:stream";
import type { Abortable } from "../../lib/abort.ts";

/** One request as it goes to a connection: `path` is below the base URL, `headers` are lower-case. */
export interface WireRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Fails when it is cut or when the signal of `send` aborts. Destroying it cancels the request. */
  readonly body: Readable;
  /** Asked when the body has ended: true when it only stopped. HTTP/2 ends a cut stream as if all was there. */
  readonly isCut: () => boolean;
}

/** One connection (HTTP/2), or what stands for many (HTTP/1.1). */
export interface Channel {
  /** How many more requests it takes now; 0 when it drains or is dead. */
  readonly room: number;
  readonly isIdle: boolean;
  /** Resolves with the answer's head. Rejects with `ConnectionLost`, or with the signal's reason. */
  send(request: WireRequest, options: Abortable): Promise<WireAnswer>;
  /** Takes no more requests and closes when the last one has ended. */
  drain(): void;
  /** Bytes that came so far. */
  readonly heard: number;
  /** A call got no answer in time: should nothing at all have come since `heard`, it is checked and avoided. */
  suspect(heard: number): void;
  /** Asks the other side whether it lives, and ends the connection should it not say so. */
  check(): void;
  destroy(): void;
}

/** A connection that was lost or could not be used. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
  /** False: the server never began with this request, so that any request may be sent again. */
  readonly mayHaveBegun: boolean;

  constructor(message: string, options: { mayHaveBegun: boolean; cause?: unknown }) {
    super(message, options);
    this.mayHaveBegun = options.mayHaveBegun;
  }
}

/** The single values of received headers. */
export function plainHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const plain: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(":")) plain[name] = Array.isArray(value) ? value.join(", ") : String(value);
  }
  return plain;
}

/** The path on the server: some stand behind a proxy that gives each a path of its own. */
export function wholePath(server: URL, path: string): string {
  return server.pathname === "/" ? path : server.pathname.replace(/\/$/, "") + path;
}
