import { type IncomingMessage, request } from "node:http";
import type { Duplex } from "node:stream";
import type { Abortable } from "../../lib/abort.ts";
import { CodedError, errnoOf, messageOf } from "../../lib/errors.ts";

/** `NoAgent`: no agent serves the socket. `Refused`: the agent answered with an error status. */
export type AgentErrorCode = "NoAgent" | "Denied" | "Refused" | "Broken";

/** A failed request to an agent. `body` is its answer, if there is one. */
export class AgentError extends CodedError<AgentErrorCode> {
  constructor(
    code: AgentErrorCode,
    message: string,
    readonly details: { readonly cause?: unknown; readonly status?: number; readonly body?: string } = {},
  ) {
    super(code, message, { cause: details.cause });
  }
}

/** An upgraded connection, and what was received after the response header. */
export interface Upgraded {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** Most bytes of one JSON answer or one line; an agent's lists stay far below. */
const LARGEST_JSON = 64 * 1024 * 1024;

/** HTTP GET, or a bare POST, over the unix socket of an agent. */
export class UnixClient {
  constructor(readonly socketPath: string) {}

  /** The parsed JSON body; its type is the caller's assertion, since the same program wrote it. */
  async json<T>(path: string, options: Abortable & { method?: "GET" | "POST" }): Promise<T> {
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of this.bytes(path, options)) {
      size += chunk.length;
      if (size > LARGEST_JSON) throw new AgentError("Broken", "the agent's answer is too large");
      chunks.push(chunk);
    }
    return parse<T>(Buffer.concat(chunks).toString("utf8"));
  }

  /** One value per line, as they come. */
  async *lines<T>(path: string, options: Abortable): AsyncGenerator<T> {
    let rest: Buffer[] = [];
    let size = 0;
    for await (const chunk of this.bytes(path, options)) {
      let from = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
        const line = Buffer.concat([...rest, chunk.subarray(from, end)]).toString("utf8");
        rest = [];
        size = 0;
        from = end + 1;
        if (line !== "") yield parse<T>(line);
      }
      if (from < chunk.length) rest.push(chunk.subarray(from));
      size += chunk.length - from;
      if (size > LARGEST_JSON) throw new AgentError("Broken", "a line of the agent's answer is too large");
    }
  }

  /** The body as it comes. Leaving the loop early ends the connection. */
  async *bytes(
    path: string,
    { signal, method = "GET" }: Abortable & { method?: "GET" | "POST" },
  ): AsyncGenerator<Buffer> {
    const response = await this.ask(path, method, signal);
    try {
      if (response.statusCode !== 200) await refuse(response);
      for await (const chunk of response) yield chunk as Buffer; // reason: no encoding is set, so chunks are buffers
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (error instanceof AgentError) throw error;
      throw new AgentError("Broken", `connection to the agent lost: ${messageOf(error)}`, { cause: error });
    } finally {
      response.destroy();
    }
  }

  /** Requests an upgrade of the connection. Rejects like the others if the agent refuses. */
  async upgrade(path: string, protocol: string, { signal }: Abortable): Promise<Upgraded> {
    const answer = await new Promise<Upgraded | IncomingMessage>((resolve, reject) => {
      const headers = {
        Connection: "Upgrade",
        Upgrade: "SPDY/3.1",
        "Content-Length": "0",
        "X-Stream-Protocol-Version": protocol,
      };
      const call = request({ socketPath: this.socketPath, path, method: "POST", agent: false, headers, signal });
      call.on("response", resolve);
      call.on("upgrade", (_response, socket, head) => {
        socket.on("error", () => socket.destroy());
        resolve({ socket, head });
      });
      call.on("error", (cause) => reject(signal.aborted ? signal.reason : connectError(this.socketPath, cause)));
      call.end();
    });
    return "socket" in answer && "head" in answer ? answer : refuse(answer as IncomingMessage); // reason: the other of two
  }

  private ask(path: string, method: string, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const call = request({ socketPath: this.socketPath, path, method, agent: false, signal });
      call.on("response", resolve);
      call.on("error", (cause) => reject(signal.aborted ? signal.reason : connectError(this.socketPath, cause)));
      call.end();
    });
  }
}

function connectError(path: string, cause: Error): AgentError {
  switch (errnoOf(cause)) {
    case "ENOENT":
    case "ECONNREFUSED":
    case "ENOTSOCK":
      return new AgentError("NoAgent", `no agent is listening on ${path}`, { cause });
    case "EACCES":
    case "EPERM":
      return new AgentError("Denied", `open ${path}: permission denied`, { cause });
    default:
      return new AgentError("Broken", `${path}: ${messageOf(cause)}`, { cause });
  }
}

async function refuse(response: IncomingMessage): Promise<never> {
  let body = "";
  for await (const chunk of response) {
    body += String(chunk);
    if (body.length > 1024 * 1024) break;
  }
  throw new AgentError("Refused", `the agent answered ${response.statusCode}`, { status: response.statusCode, body });
}

function parse<T>(text: string): T {
  try {
    return JSON.parse(text) as T; // reason: written by the same program; a mismatch of versions shows as odd output only
  } catch (cause) {
    throw new AgentError("Broken", "the agent's answer is not valid JSON", { cause });
  }
}
