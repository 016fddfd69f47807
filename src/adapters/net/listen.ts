import { chmodSync, lstatSync, unlinkSync } from "node:fs";
import { connect, type Server } from "node:net";
import { errnoOf, messageOf } from "../../lib/errors.ts";
import { ListenError, type ListenErrorCode } from "./listen-error.ts";
import { findPortHolder, type PortHolder } from "./port-holder.ts";

export interface TcpAddress {
  readonly host: string;
  /** 0 selects a free one. */
  readonly port: number;
  /** The flag that sets the port, for the error message. */
  readonly option?: string;
}

export interface UnixAddress {
  readonly path: string;
  readonly mode: number;
}

interface Bound {
  readonly address: string;
  readonly port: number;
}

/** Binds or rejects with `ListenError`. */
export async function bindTcp(server: Server, wanted: TcpAddress): Promise<Bound> {
  try {
    await listening(server, () => server.listen({ host: wanted.host, port: wanted.port }));
  } catch (error) {
    throw tcpError(wanted, error);
  }
  const actual = server.address();
  const port = typeof actual === "object" && actual !== null ? actual.port : wanted.port;
  const host = wanted.host.includes(":") ? `[${wanted.host}]` : wanted.host;
  return { address: `${host}:${port}`, port };
}

function tcpError({ host, port, option }: TcpAddress, cause: unknown): ListenError {
  const named = `port ${port}${option === undefined ? "" : ` (--${option})`}`;
  switch (errnoOf(cause)) {
    case "EADDRINUSE":
      return new ListenError("InUse", `${named} is in use${byWhom(findPortHolder(port))}`, { cause });
    case "EACCES":
      return new ListenError("Denied", `${named} permission denied: ports below 1024 need root`, { cause });
    case "EADDRNOTAVAIL":
      return new ListenError("NoAddress", `${named}: the host has no address ${host}`, { cause });
    default:
      return new ListenError("Other", `${named}: ${messageOf(cause)}`, { cause });
  }
}

function byWhom(holder: PortHolder | undefined): string {
  return holder === undefined ? " by another process" : ` by ${holder.command} (pid ${holder.pid})`;
}

/** The kernel's limit; older versions of Node cut a longer path silently. */
const LONGEST_SOCKET_PATH = 107;

/** Binds a unix socket with the given mode. A stale socket is replaced; a served one is `InUse`. */
export async function bindUnix(server: Server, { path, mode }: UnixAddress): Promise<Bound> {
  if (Buffer.byteLength(path) > LONGEST_SOCKET_PATH) {
    throw new ListenError("PathTooLong", `listen on ${path}: the path is longer than ${LONGEST_SOCKET_PATH} bytes`);
  }
  await removeStale(path);
  try {
    await listening(server, () => {
      server.listen(path);
      // Binding is synchronous, so the mode is set before a connection is accepted.
      if (server.listening) chmodSync(path, mode);
    });
  } catch (cause) {
    const codes: Record<string, ListenErrorCode> = { EADDRINUSE: "InUse", EACCES: "Denied", EPERM: "Denied" };
    throw new ListenError(codes[errnoOf(cause) ?? ""] ?? "Other", `listen on ${path}: ${messageOf(cause)}`, { cause });
  }
  return { address: path, port: 0 };
}

async function removeStale(path: string): Promise<void> {
  let isSocket: boolean;
  try {
    isSocket = lstatSync(path).isSocket();
  } catch {
    return; // not there, or unreachable: binding tells
  }
  if (!isSocket) throw new ListenError("Other", `listen on ${path}: the file is not a socket`);
  if (await isServed(path)) throw new ListenError("InUse", `listen on ${path}: another agent serves this socket`);
  try {
    unlinkSync(path);
  } catch (cause) {
    if (errnoOf(cause) !== "ENOENT")
      throw new ListenError("Denied", `listen on ${path}: ${messageOf(cause)}`, { cause });
  }
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    const answer = (served: boolean): void => {
      probe.destroy();
      resolve(served);
    };
    probe.on("error", (error) => answer(errnoOf(error) !== "ECONNREFUSED" && errnoOf(error) !== "ENOENT"));
    probe.on("connect", () => answer(true));
  });
}

function listening(server: Server, start: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (error?: Error): void => {
      server.off("error", done).off("listening", done);
      if (error === undefined) resolve();
      else reject(error);
    };
    server.on("error", done).on("listening", done);
    try {
      start();
    } catch (error) {
      server.close();
      done(error as Error); // reason: chmod throws only errors of the system
    }
  });
}
