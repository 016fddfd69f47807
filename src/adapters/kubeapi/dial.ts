import { isIP, type Socket } from "node:net";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import type { TlsMaterial } from "./credentials.ts";
import { connectTo, type DialOptions, type Place, secure } from "./sockets.ts";

export interface DialTarget {
  readonly server: URL;
  readonly tls: TlsMaterial;
  readonly serverName?: string;
  readonly isInsecure: boolean;
  readonly proxyUrl?: string;
}

export interface Connection {
  readonly socket: Socket | TLSSocket;
  readonly protocol: "h2" | "http/1.1";
}

/** Connects to a server, through its proxy if it has one, and agrees on the protocol. Rejects with a plain error. */
export async function dial(target: DialTarget, options: DialOptions): Promise<Connection> {
  const { server } = target;
  const isTls = server.protocol === "https:";
  const place = { host: bareHost(server.hostname), port: Number(server.port || (isTls ? 443 : 80)) };
  const socket = await openTunnel(target, place, options);
  if (!isTls) return { socket, protocol: "http/1.1" };
  const secured = await secure(socket, tlsOptions(target, place.host), options);
  return { socket: secured, protocol: secured.alpnProtocol === "h2" ? "h2" : "http/1.1" };
}

async function openTunnel(target: DialTarget, place: Place, options: DialOptions): Promise<Socket> {
  if (target.proxyUrl === undefined) return connectTo(place, options);
  const { openThroughProxy } = await import("./proxy.ts");
  return openThroughProxy(new URL(target.proxyUrl), place, options);
}

function tlsOptions(target: DialTarget, host: string): ConnectionOptions {
  const name = target.serverName ?? host;
  return {
    // An address is checked against the certificate, too, but must not be sent as a server name.
    ...(isIP(name) === 0 ? { servername: name } : { host: name }),
    ALPNProtocols: ["h2", "http/1.1"],
    rejectUnauthorized: !target.isInsecure,
    ...(target.tls.authority !== "" && { ca: target.tls.authority }),
    ...(target.tls.certificate !== "" && { cert: target.tls.certificate, key: target.tls.key }),
  };
}

/** `[::1]` of a URL is `::1` for a socket. */
function bareHost(host: string): string {
  return host.startsWith("[") ? host.slice(1, -1) : host;
}
