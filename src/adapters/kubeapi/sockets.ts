import { lookup } from "node:dns/promises";
import { connect, isIP, type Socket } from "node:net";
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from "node:tls";
import { type Abortable, withScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";

export interface DialOptions extends Abortable {
  readonly clock: Clock;
}

/** As in Kubernetes, in milliseconds. */
const CONNECT_LIMIT_MS = 30_000;
const HANDSHAKE_LIMIT_MS = 10_000;
/** With several addresses a dead one is left sooner. */
const ONE_OF_SEVERAL_LIMIT_MS = 3_000;

export interface Place {
  readonly host: string;
  readonly port: number;
}

/** A TCP connection to the first address of `host` that answers. */
export async function connectTo({ host, port }: Place, options: DialOptions): Promise<Socket> {
  const addresses = isIP(host) === 0 ? (await lookup(host, { all: true })).map(({ address }) => address) : [host];
  const failures: string[] = [];
  for (const address of addresses) {
    const ms = addresses.length > 1 ? ONE_OF_SEVERAL_LIMIT_MS : CONNECT_LIMIT_MS;
    try {
      return await withScope([options.signal], { clock: options.clock, ms }, (signal) => {
        const socket = connect({ host: address, port, keepAlive: true, keepAliveInitialDelay: 30_000, noDelay: true });
        return untilEvent(socket, "connect", signal);
      });
    } catch (error) {
      options.signal.throwIfAborted();
      failures.push(messageOf(error) || `connect ${address}:${port} failed`);
    }
  }
  throw new Error(failures.join("; ") || `${host} has no address`);
}

/** TLS over a connected socket. The socket is destroyed if that fails. */
export async function secure(
  socket: Socket,
  settings: ConnectionOptions,
  { clock, signal }: DialOptions,
): Promise<TLSSocket> {
  try {
    return await withScope([signal], { clock, ms: HANDSHAKE_LIMIT_MS }, (inner) =>
      untilEvent(tlsConnect({ ...settings, socket }), "secureConnect", inner),
    );
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Resolves with the socket at its event; a failure or an abort destroys it. An `error` listener stays for good. */
function untilEvent<S extends Socket>(socket: S, event: string, signal: AbortSignal): Promise<S> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      socket.off("close", onClose);
      act();
    };
    const fail = (error: Error): void =>
      settle(() => {
        socket.destroy();
        reject(error);
      });
    const onAbort = (): void => fail(signal.reason as Error);
    const onClose = (): void => fail(new Error("the connection was closed"));
    socket.on("error", fail);
    socket.once("close", onClose);
    socket.once(event, () => settle(() => resolve(socket)));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
}
