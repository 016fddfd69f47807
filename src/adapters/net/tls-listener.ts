import { X509Certificate } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { createServer, type Server, type ServerOptions } from "node:https";
import type { Socket } from "node:net";
import { type PeerCertificate, type SecureContextOptions, type SecureVersion, TLSSocket } from "node:tls";
import { messageOf } from "../../lib/errors.ts";
import type { Live } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { type ChainContext, isChainTrusted, isForNow, parseAuthorities } from "./client-chain.ts";
import type { ClientCertificate } from "./http-route.ts";

/** Serving certificate and client authorities. Without a certificate every handshake fails. */
export interface TlsMaterial {
  /** PEM, leaf first. */
  readonly certificate: string;
  readonly key: string;
  /** PEM of the client authorities; empty: no client certificate is requested. */
  readonly clientAuthorities: string;
}

export interface TlsOptions {
  /** A change applies to new connections; existing ones stay open. */
  readonly material: Live<TlsMaterial>;
  readonly minVersion: SecureVersion;
  /** OpenSSL's names; undefined for Node's default. */
  readonly ciphers?: string | undefined;
  readonly groups?: string | undefined;
}

/** Time limit of a handshake in milliseconds. */
const HANDSHAKE_MS = 20_000;
/** Kubernetes' attribute for the UID of a user. */
const UID_ATTRIBUTE = "1.3.6.1.4.1.57683.2";

/** An HTTPS server whose certificate and client authorities follow `material`. */
export class TlsListener {
  readonly server: Server;
  private readonly asked = new WeakMap<TLSSocket, ClientCertificate | "none">();
  /** The client authorities (PEM) that a connection was accepted with, by both its ends. */
  private readonly accepted = new Map<string, string>();
  private readonly judged = new WeakMap<TLSSocket, Judgement>();
  private trust: ChainContext & { readonly pem: string };

  constructor(
    private readonly deps: { log: Logger },
    private readonly options: TlsOptions,
    http: ServerOptions,
  ) {
    const { current } = options.material;
    this.trust = { pem: current.clientAuthorities, authorities: parseAuthorities(current.clientAuthorities) };
    this.server = createServer({
      ...http,
      ...this.context(current),
      handshakeTimeout: HANDSHAKE_MS,
      requestCert: current.clientAuthorities !== "",
      rejectUnauthorized: false,
    });
    this.server.on("connection", (socket: Socket) => this.accept(socket));
    this.server.on("secureConnection", (socket) => {
      this.judged.set(socket, { pem: this.accepted.get(peerKey(socket)), isTrusted: socket.authorized });
    });
    // Garbage, old versions, scanners. The socket is destroyed by then.
    this.server.on("tlsClientError", (error) => deps.log.debug(4, "TLS handshake failed", { error: messageOf(error) }));
  }

  /** Follows the material until the signal aborts. */
  follow(signal: AbortSignal): void {
    this.options.material.onChange((next) => this.renew(next), { signal });
  }

  /** The client certificate of a request, if one was presented. */
  peerOf(request: IncomingMessage): ClientCertificate | undefined {
    const { socket } = request;
    if (!(socket instanceof TLSSocket)) return undefined;
    let known = this.asked.get(socket);
    if (known === undefined) {
      known = this.describe(socket) ?? "none";
      this.asked.set(socket, known);
    }
    return known === "none" ? undefined : known;
  }

  /** Remembers the authorities of a handshake: they may be replaced before it ends, and long before the first request. */
  private accept(socket: Socket): void {
    const key = peerKey(socket);
    this.accepted.set(key, this.trust.pem);
    socket.once("close", () => this.accepted.delete(key));
  }

  private renew(next: TlsMaterial): void {
    try {
      const authorities = parseAuthorities(next.clientAuthorities);
      this.server.setSecureContext(this.context(next));
      // Node reads it at each connection, and has no other way to change it.
      Object.assign(this.server, { requestCert: next.clientAuthorities !== "" });
      this.trust = { pem: next.clientAuthorities, authorities };
      this.deps.log.info("Updated certificates of the main port");
    } catch (error) {
      this.deps.log.warn("Failed to update certificates of the main port, keeping the previous ones", {
        error: messageOf(error),
      });
    }
  }

  private context({ certificate, key, clientAuthorities }: TlsMaterial): SecureContextOptions {
    const { minVersion, ciphers, groups } = this.options;
    return {
      ...(certificate === "" ? {} : { cert: certificate, key }),
      // Never left out: without it Node would trust its own list of authorities.
      ca: clientAuthorities === "" ? [] : clientAuthorities,
      minVersion,
      ...(ciphers === undefined ? {} : { ciphers }),
      ...(groups === undefined ? {} : { ecdhCurve: groups }),
      honorCipherOrder: true,
    };
  }

  private describe(socket: TLSSocket): ClientCertificate | undefined {
    const shown = socket.getPeerCertificate(true);
    if (shown === null || Object.keys(shown).length === 0) return undefined;
    const chain = chainOf(shown);
    const [leaf] = chain;
    if (leaf === undefined) return undefined;
    const atHandshake = this.judged.get(socket);
    const subject = shown.subject as unknown as Readonly<Record<string, string | string[] | undefined>>; // reason: a name may repeat, and any attribute may be there
    return {
      commonName: listed(subject["CN"]).at(-1) ?? "",
      organizations: listed(subject["O"]),
      uids: listed(subject[UID_ATTRIBUTE]),
      fingerprint: leaf.fingerprint256.replaceAll(":", "").toLowerCase(),
      isTrusted: (wallMs) => {
        // OpenSSL judged by the authorities of the handshake; once they are replaced the chain is verified here. Node 24
        // and 26 do not expose intermediate certificates, so a client that needs them has to reconnect then.
        if (atHandshake?.pem === this.trust.pem) return atHandshake.isTrusted && isForNow(leaf, wallMs);
        return isChainTrusted(chain, this.trust, wallMs);
      },
    };
  }
}

/** What the handshake of a connection was judged by, and how. */
interface Judgement {
  readonly pem: string | undefined;
  readonly isTrusted: boolean;
}

/** The same for a connection before and after its handshake. */
function peerKey({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress}|${remotePort}|${localAddress}|${localPort}`;
}

function listed(value: string | string[] | undefined): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}

/** The certificates that the client presented, leaf first, at most ten: a chain may be circular. */
function chainOf(shown: ReturnType<TLSSocket["getPeerCertificate"]>): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let at: (PeerCertificate & { issuerCertificate?: PeerCertificate }) | undefined = shown;
  while (at?.raw !== undefined && chain.length < 10) {
    chain.push(new X509Certificate(at.raw));
    const next: PeerCertificate | undefined = at.issuerCertificate;
    at = next === at ? undefined : next;
  }
  return chain;
}
