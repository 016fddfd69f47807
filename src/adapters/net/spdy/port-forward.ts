import { createServer, type Server, type Socket } from "node:net";
import { type Abortable, AbortedError } from "../../../lib/abort.ts";
import { CodedError, messageOf } from "../../../lib/errors.ts";
import type { Upgraded } from "../unix-client.ts";
import { SpdySession } from "./session.ts";

/** The connection to the pod was lost, or a local port failed to open. */
export class PortForwardError extends CodedError<"Lost" | "Listen"> {}

/** One port of this machine that leads to one of the pod. */
export interface PortPair {
  /** 0 selects a free one. */
  readonly local: number;
  readonly remote: number;
}

export interface PortForwardOptions {
  readonly host: string;
  readonly ports: readonly PortPair[];
  /** Called once all local ports are open. */
  ready(ports: readonly PortPair[]): void;
  /** The error of one connection; the others continue. */
  trouble(message: string): void;
}

/** Sub-protocol of port-forward. */
export const FORWARD_PROTOCOL = "portforward.k8s.io";
/** Bytes that are buffered for a slow local client before the other connections are slowed down with it. */
const MOST_WAITING = 1024 * 1024;

/** Listens on the local ports and forwards connections to the pod until the signal aborts or the connection is lost. */
export async function runPortForward(
  { socket, head }: Upgraded,
  options: PortForwardOptions,
  { signal }: Abortable,
): Promise<void> {
  const session = new SpdySession(socket, head);
  const clients = new Set<Socket>();
  const servers: Server[] = [];
  const cut = (): void => session.close();
  signal.addEventListener("abort", cut, { once: true });
  try {
    const running = session.run();
    const bound: PortPair[] = [];
    for (const { local, remote } of options.ports) {
      const server = createServer({ allowHalfOpen: true }, (client) => {
        clients.add(client);
        client.on("close", () => clients.delete(client));
        join(session, client, { remote, trouble: options.trouble });
      });
      servers.push(server);
      bound.push({ local: await listen(server, options.host, local), remote });
    }
    options.ready(bound);
    await running;
    if (signal.aborted) throw signal.reason instanceof Error ? signal.reason : new AbortedError();
    throw new PortForwardError("Lost", "connection to the pod closed");
  } finally {
    signal.removeEventListener("abort", cut);
    session.close();
    for (const client of clients) client.destroy();
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

let requests = 0;

/** Two streams for each connection: one for data, one for errors of the runtime. */
function join(
  session: SpdySession,
  client: Socket,
  { remote, trouble }: { remote: number; trouble: (message: string) => void },
): void {
  client.on("error", () => undefined);
  const headers = { port: String(remote), requestid: String(requests++) };
  let complaint = "";
  const errors = session.open(
    { ...headers, streamtype: "error" },
    {
      data: (bytes) => {
        complaint += bytes.toString("utf8");
      },
      end: () => {
        if (complaint !== "") trouble(`port ${remote}: ${complaint}`);
        if (complaint !== "") client.destroy();
      },
    },
  );
  errors.end();
  const data = session.open(
    { ...headers, streamtype: "data" },
    {
      data: (bytes) => deliver(client, Buffer.from(bytes)),
      end: (error) => (error === undefined ? client.end() : client.destroy()),
    },
  );
  client.on("close", (hadError) => {
    // What the pod still has to say has no reader any more.
    if (hadError || !client.readableEnded) data.reset();
  });
  pump(client, data).catch((error: unknown) => {
    data.reset();
    if (!client.destroyed) trouble(messageOf(error));
  });
}

async function pump(client: Socket, into: ReturnType<SpdySession["open"]>): Promise<void> {
  // Left early or broken, the socket must not be destroyed by the loop: the other direction may go on.
  for await (const chunk of client.iterator({ destroyOnReturn: false })) await into.write(chunk as Buffer);
  into.end();
}

async function deliver(client: Socket, bytes: Buffer): Promise<void> {
  if (client.destroyed || client.write(bytes) || client.writableLength < MOST_WAITING) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      client.off("drain", done).off("close", done);
      resolve();
    };
    client.on("drain", done).on("close", done);
  });
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.on("error", (cause) => {
      reject(new PortForwardError("Listen", `listen on ${host}:${port}: ${messageOf(cause)}`, { cause }));
    });
    server.listen({ host, port }, () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}
