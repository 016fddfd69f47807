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
  /** Fails if it is interrupted or the signal of `send` aborts. Destroying it cancels the request. */
  readonly body: Readable;
  /** Called after the end of the body: true if it was interrupted. HTTP/2 ends such a stream as if it was complete. */
  readonly isCut: () => boolean;
}

/** A response as a whole. */
export interface WholeAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/** One connection (HTTP/2), or a pool of them (HTTP/1.1). */
export interface Channel {
  /** Number of further requests that it accepts now; 0 if it drains or is dead. */
  readonly room: number;
  readonly isIdle: boolean;
  /** Resolves with the response head. Rejects with `ConnectionLost`, or with the signal's reason. */
  send(request: WireRequest, options: Abortable): Promise<WireAnswer>;
  /**
   * Sends GET requests together, with as little work as possible. Resolves when all have ended, with undefined for each that
   * has no whole response; an abort ends them. Only as many are sent as there is room for.
   */
  readAll?(
    requests: { readonly paths: readonly string[]; readonly headers: WireRequest["headers"] },
    options: Abortable,
  ): Promise<readonly (WholeAnswer | undefined)[]>;
  /** Accepts no more requests and closes after the last one. */
  drain(): void;
  /** Bytes received so far. */
  readonly heard: number;
  /** A call timed out: if nothing was received since `heard`, the connection is checked and avoided. */
  suspect(heard: number): void;
  /** Pings the server, and closes the connection without a response. */
  check(): void;
  destroy(): void;
}

/** A connection that was lost or could not be used. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
  /** False if the server did not begin to process the request: then any request may be retried. */
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
