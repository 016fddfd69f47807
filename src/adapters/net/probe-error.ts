import { CodedError, errnoOf, messageOf } from "../../lib/errors.ts";

/**
 * A connection that was not made or that broke off. `Dial`: before anything was sent. `PlainAnswer`: the other side
 * speaks no TLS. `Redirects`: too many of them. Messages are worded as clients know them from Kubernetes.
 */
export class ProbeNetError extends CodedError<"Dial" | "Tls" | "PlainAnswer" | "Broken" | "Malformed" | "Redirects"> {}

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused",
  EHOSTUNREACH: "connect: no route to host",
  ENETUNREACH: "connect: network is unreachable",
  ECONNRESET: "connect: connection reset by peer",
  ETIMEDOUT: "connect: connection timed out",
  EACCES: "connect: permission denied",
  EADDRNOTAVAIL: "connect: cannot assign requested address",
  EMFILE: "socket: too many open files",
};

/** What a failed connect is called. */
export function dialError(address: string, cause: unknown): ProbeNetError {
  const errno = errnoOf(cause) ?? "";
  const name = address.replace(/:\d+$/, "");
  if (errno === "ENOTFOUND") return new ProbeNetError("Dial", `dial tcp: lookup ${name}: no such host`, { cause });
  return new ProbeNetError("Dial", `dial tcp ${address}: ${WORDS[errno] ?? messageOf(cause)}`, { cause });
}

/** What a connect is called that took all the time there was. */
export function dialTimeout(address: string): ProbeNetError {
  return new ProbeNetError("Dial", `dial tcp ${address}: i/o timeout`);
}
