import { lookup } from "node:dns/promises";
import { connect, isIP, type Socket } from "node:net";
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from "node:tls";
import { type Abortable, withScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";

export interface DialOptions extends Abortable {
  readonly clock: Clock;
  /** All addresses of a name; defaults to the system's resolver. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
}

/** Timeouts of the steps, in milliseconds. */
export interface StepLimits {
  readonly connectMs: number;
  readonly handshakeMs: number;
}

/** As in Kubernetes. */
const ALONE: StepLimits = { connectMs: 30_000, handshakeMs: 10_000 };
/** With several addresses an unreachable one is given up sooner. */
const ONE_OF_SEVERAL: StepLimits = { connectMs: 3_000, handshakeMs: 3_000 };

export interface Place {
  readonly host: string;
  readonly port: number;
}

/** Returns the result of `attempt` for the first address with which it succeeds; each has the given timeouts. */
export async function firstAddress<T>(
  { host, port }: Place,
  options: DialOptions,
  attempt: (place: Place, limits: StepLimits) => Promise<T>,
): Promise<T> {
  const addresses = isIP(host) === 0 ? await (options.resolve ?? systemAddresses)(host) : [host];
  const limits = addresses.length > 1 ? ONE_OF_SEVERAL : ALONE;
  const failures: string[] = [];
  for (const address of addresses) {
    try {
      return await attempt({ host: address, port }, limits);
    } catch (error) {
      options.signal.throwIfAborted();
      failures.push(messageOf(error) || `connect ${address}:${port} failed`);
    }
  }
  throw new Error(failures.join("; ") || `lookup ${host}: no address`);
}

async function systemAddresses(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

/** A TCP connection to the first address of `host` that answers. */
export function connectTo(place: Place, options: DialOptions): Promise<Socket> {
  return firstAddress(place, options, (one, { connectMs }) => connectToAddress(one, connectMs, options));
}

/** A TCP connection to an address. */
export function connectToAddress({ host, port }: Place, ms: number, { clock, signal }: DialOptions): Promise<Socket> {
  return withScope([signal], { clock, ms }, (inner) => {
    const socket = connect({ host, port, keepAlive: true, keepAliveInitialDelay: 30_000, noDelay: true });
    return untilEvent(socket, "connect", inner);
  });
}

/** TLS over a connected socket. The socket is destroyed if that fails. */
export async function secure(
  socket: Socket,
  { settings, ms = ALONE.handshakeMs }: { readonly settings: ConnectionOptions; readonly ms?: number },
  { clock, signal }: DialOptions,
): Promise<TLSSocket> {
  try {
    return await withScope([signal], { clock, ms }, (inner) =>
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
    const onClose = (): void => fail(new Error("connection was closed"));
    socket.on("error", fail);
    socket.once("close", onClose);
    socket.once(event, () => settle(() => resolve(socket)));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
}
