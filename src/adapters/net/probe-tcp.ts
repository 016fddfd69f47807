import { type Abortable, abortCalls, TimeLimitError } from "../../lib/abort.ts";
import { hostAndPort } from "../../model/http-action.ts";
import { dialError, dialTimeout } from "./probe-error.ts";
import { openLink, type TcpAddress } from "./probe-link.ts";

/** Resolves once the other side has taken the connection, which is closed again. Rejects with `ProbeNetError` or the signal's reason. */
export function probeTcp(address: TcpAddress, { signal }: Abortable): Promise<void> {
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  return new Promise((resolve, reject) => {
    const calls = abortCalls(signal);
    const finish = (failure?: Error): void => {
      calls.delete(onAbort);
      link.close();
      if (failure === undefined) resolve();
      else reject(failure);
    };
    const words = (): string => hostAndPort(address.host, address.port);
    const onAbort = (): void => {
      finish(signal.reason instanceof TimeLimitError ? dialTimeout(words()) : (signal.reason as Error));
    };
    const link = openLink(address, {
      connected: () => finish(),
      took: () => undefined,
      failed: (error) => finish(dialError(words(), error)),
      closed: () => finish(dialError(words(), new Error("the connection was closed"))),
    });
    calls.add(onAbort);
  });
}
