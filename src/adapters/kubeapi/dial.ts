import { isIP, type Socket } from "node:net";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import type { TlsMaterial } from "./credentials.ts";
import { connectToAddress, type DialOptions, firstAddress, secure } from "./sockets.ts";

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

/**
 * Connects to a server, through its proxy if it has one, and agrees on the protocol. Of several addresses behind the
 * name the first that also shakes hands is taken. Rejects with a plain error.
 */
export async function dial(target: DialTarget, options: DialOptions): Promise<Connection> {
  const { server, proxyUrl } = target;
  const isTls = server.protocol === "https:";
  const place = { host: bareHost(server.hostname), port: Number(server.port || (isTls ? 443 : 80)) };
  const settings = tlsOptions(target, place.host);
  const finish = async (socket: Socket, ms?: number): Promise<Connection> => {
    if (!isTls) return { socket, protocol: "http/1.1" };
    const secured = await secure(socket, { settings, ...(ms !== undefined && { ms }) }, options);
    return { socket: secured, protocol: secured.alpnProtocol === "h2" ? "h2" : "http/1.1" };
  };
  if (proxyUrl !== undefined) {
    const { openThroughProxy } = await import("./proxy.ts");
    return finish(await openThroughProxy(new URL(proxyUrl), place, options));
  }
  return firstAddress(place, options, async (one, { connectMs, handshakeMs }) =>
    finish(await connectToAddress(one, connectMs, options), handshakeMs),
  );
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
