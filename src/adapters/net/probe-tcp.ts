import { connect, type Socket } from "node:net";
import { type Abortable, TimeLimitError } from "../../lib/abort.ts";
import { hostAndPort } from "../../model/http-action.ts";
import { dialError, dialTimeout } from "./probe-error.ts";

export interface TcpAddress {
  readonly host: string;
  readonly port: number;
}

/** Resolves once the other side has taken the connection, which is closed again. Rejects with `ProbeNetError` or the signal's reason. */
export function probeTcp(address: TcpAddress, { signal }: Abortable): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const text = hostAndPort(address.host, address.port);
    const socket: Socket = connect({ host: address.host, port: address.port });
    const onAbort = (): void => {
      socket.destroy();
      reject(signal.reason instanceof TimeLimitError ? dialTimeout(text) : (signal.reason as Error));
    };
    const done = (settle: () => void): void => {
      signal.removeEventListener("abort", onAbort);
      socket.destroy();
      settle();
    };
    socket.on("error", (error) => done(() => reject(dialError(text, error))));
    socket.on("connect", () => done(resolve));
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
