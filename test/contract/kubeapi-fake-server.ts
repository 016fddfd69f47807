import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { certificate, newKey } from "../../src/adapters/kubeapi/certificates.ts";
import {
  FakeObjects,
  jsonPatch,
  matches,
  mergePatch,
  type Place,
  Refusal,
  type StoredEvent,
  strategicPatch,
} from "./kubeapi-fake-objects.ts";

type Json = Record<string, unknown>;

/** What happens to a request instead of being served. */
export type Fault =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: string;
    }
  | { readonly kind: "never" }
  | { readonly kind: "cut" }
  /** Says half of its answer and then cuts. */
  | { readonly kind: "half"; readonly body: string };

interface Script {
  readonly matches: (request: SeenRequest) => boolean;
  readonly fault: Fault;
  left: number;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, unknown>>;
  /** Which connection it came on, counted from 1. */
  readonly connection: number;
  /** Common name of the client's certificate; empty without one. */
  readonly client: string;
  /** "1.1" or "2.0". */
  readonly httpVersion: string;
}

interface OpenWatch {
  readonly response: Http2ServerResponse;
  readonly stop: () => void;
}

export interface FakeApiOptions {
  readonly maxConcurrentStreams?: number;
  /** Speaks HTTP/1.1 only. */
  readonly http1?: boolean;
  readonly basePath?: string;
}

/** An API server in this process that does what a test scripts: TLS, HTTP/2, list and watch, and faults. */
export class FakeApiServer {
  readonly objects = new FakeObjects();
  readonly requests: SeenRequest[] = [];
  readonly authorityPem: string;
  readonly authorityKey = newKey();
  private readonly serverKey = newKey();
  private readonly serverPem: string;
  private readonly scripts: Script[] = [];
  private readonly sockets = new Map<Socket, number>();
  private readonly raw = new Set<Socket>();
  private readonly watches = new Set<OpenWatch>();
  private readonly sessions = new Set<ServerHttp2Session>();
  private server: Http2SecureServer | undefined;
  port = 0;
  connections = 0;
  /** Since the start, ended ones too. */
  acceptedWatches = 0;

  private constructor(private readonly options: FakeApiOptions) {
    const span = { notBefore: Date.now() - 60_000, notAfter: Date.now() + 3_600_000 };
    const subject = { commonName: "fake-authority" };
    this.authorityPem = certificate(this.authorityKey, { subject, ...span, usages: [], isAuthority: true });
    const names = { dnsNames: ["localhost"], addresses: ["127.0.0.1"] };
    const content = { subject: { commonName: "fake-api" }, ...names, ...span, usages: ["server"] as const };
    this.serverPem = certificate(this.serverKey, content, { subject, keyPem: this.authorityKey });
  }

  static async start(options: FakeApiOptions = {}): Promise<FakeApiServer> {
    const fake = new FakeApiServer(options);
    await fake.listen();
    return fake;
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}${this.options.basePath ?? ""}`;
  }

  get openWatches(): number {
    return this.watches.size;
  }

  /** A client certificate of this server's authority. */
  clientPair(commonName: string): { certificate: string; key: string } {
    const key = newKey();
    const span = { notBefore: Date.now() - 60_000, notAfter: Date.now() + 3_600_000 };
    const issuer = { subject: { commonName: "fake-authority" }, keyPem: this.authorityKey };
    return { key, certificate: certificate(key, { subject: { commonName }, ...span, usages: ["client"] }, issuer) };
  }

  /** Listens (again) on the same port. */
  async listen(): Promise<void> {
    const { maxConcurrentStreams = 100, http1 = false } = this.options;
    const serve = (request: Http2ServerRequest, response: Http2ServerResponse): void =>
      void this.serve(request, response);
    const tls = {
      key: this.serverKey,
      cert: this.serverPem,
      ca: this.authorityPem,
      requestCert: true,
      rejectUnauthorized: false,
    };
    // A server of HTTP/2 offers that first, whatever its options say (Node 20).
    const server = http1
      ? (createHttpsServer(tls, serve as never) as unknown as Http2SecureServer)
      : createSecureServer({ ...tls, allowHTTP1: true, settings: { maxConcurrentStreams } }, serve);
    // Also those whose handshake is not over: a server that stops would wait for them.
    server.on("connection", (socket: Socket) => {
      this.raw.add(socket);
      socket.on("close", () => this.raw.delete(socket)).on("error", () => undefined);
    });
    server.on("secureConnection", (socket: Socket) => {
      this.sockets.set(socket, ++this.connections);
      socket.on("close", () => this.sockets.delete(socket)).on("error", () => undefined);
    });
    server.on("sessionError", () => undefined).on("error", () => undefined);
    server.on("session", (session) => {
      session.on("error", () => undefined);
      this.sessions.add(session);
      session.on("close", () => this.sessions.delete(session));
    });
    await new Promise<void>((resolve) => server.listen(this.port, "127.0.0.1", resolve));
    this.port = (server.address() as AddressInfo).port;
    this.server = server;
  }

  /** As a killed process: every connection is reset and the port is closed. */
  async stop(): Promise<void> {
    const server = this.server;
    this.server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    this.cutAll();
    for (const socket of this.raw) socket.destroy();
    await closed;
  }

  cutAll(): void {
    for (const socket of this.sockets.keys()) socket.destroy();
  }

  /** GOAWAY on every connection; code 0 asks the client to go elsewhere when it is done. */
  goaway(code: number): void {
    for (const session of this.sessions) session.goaway(code);
  }

  /** The next `times` requests that match get the fault instead. */
  script(matches: Script["matches"], fault: Fault, times = 1): void {
    this.scripts.push({ matches, fault, left: times });
  }

  /** Sends a line, true or not, to every watch. */
  tellWatches(line: string): void {
    for (const { response } of this.watches) response.write(line);
  }

  /** Sends the newest version to every watch. */
  bookmark(kind = "Pod"): void {
    const metadata = { resourceVersion: String(this.objects.version), creationTimestamp: null };
    this.tellWatches(`${JSON.stringify({ type: "BOOKMARK", object: { kind, apiVersion: "v1", metadata } })}\n`);
  }

  /** Ends every watch as the server does at its time limit. */
  endWatches(): void {
    for (const { response, stop } of [...this.watches]) {
      stop();
      response.end();
    }
  }

  private async serve(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    const url = new URL(request.url, "https://fake");
    const seen = this.seen(request, url);
    this.requests.push(seen);
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const script = this.scripts.find((candidate) => candidate.left > 0 && candidate.matches(seen));
    try {
      if (script !== undefined) {
        script.left--;
        return this.act(script.fault, request, response);
      }
      this.answer(seen, body, response);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.refuse(error, response);
    }
  }

  private seen(request: Http2ServerRequest, url: URL): SeenRequest {
    const socket = request.stream?.session?.socket ?? request.socket;
    const tls = socket as unknown as { getPeerCertificate(): { subject?: { CN?: string } } };
    const port = (socket as Socket).remotePort;
    const connection = [...this.sockets].find(([known]) => known.remotePort === port)?.[1] ?? 0;
    const base = this.options.basePath ?? "";
    const path = url.pathname.startsWith(base) ? url.pathname.slice(base.length) : `/outside${url.pathname}`;
    return {
      method: request.method,
      path,
      query: url.searchParams,
      headers: request.headers,
      connection,
      client: tls.getPeerCertificate().subject?.CN ?? "",
      httpVersion: request.httpVersion,
    };
  }

  private act(fault: Fault, request: Http2ServerRequest, response: Http2ServerResponse): void {
    if (fault.kind === "answer") {
      response.writeHead(fault.status, fault.headers ?? {});
      response.end(fault.body ?? "");
    } else if (fault.kind === "cut") (request.stream?.session ?? request.socket).destroy();
    else if (fault.kind === "half") {
      response.writeHead(200, { "content-type": "application/json" });
      response.write(fault.body);
      // When it had time to leave.
      setTimeout(() => this.cutAll(), 20);
    }
  }

  private refuse({ code, reason, message }: Refusal, response: Http2ServerResponse): void {
    response.writeHead(code, { "content-type": "application/json" });
    response.end(JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message }));
  }

  private answer(seen: SeenRequest, body: string, response: Http2ServerResponse): void {
    const { place, subresource } = placeOf(seen.path);
    const { query } = seen;
    const send = (value: unknown, status = 200): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value));
    };
    if (seen.path === "/version") return send({ gitVersion: "v1.36.3-fake" });
    if (place === undefined) throw new Refusal(404, "NotFound", "the server could not find the requested resource");
    const json = (): Json => (body === "" ? {} : (JSON.parse(body) as Json));
    if (subresource === "token") return send({ ...json(), metadata: {}, status: tokenStatus(place) }, 201);
    switch (seen.method) {
      case "GET":
        if (query.get("watch") === "true") return this.watch(place, query, response);
        return place.name === "" ? send(this.list(place, query)) : send(this.objects.get(place));
      case "POST":
        return send(this.objects.create(place, json()), 201);
      case "PUT":
        return send(this.objects.replace(place, json(), subresource));
      case "PATCH":
        return send(this.patch(place, subresource, { seen, body }));
      case "DELETE":
        return send(this.objects.delete(place, json()));
      default:
        throw new Refusal(405, "MethodNotAllowed", seen.method);
    }
  }

  private patch(place: Place, subresource: string, { seen, body }: { seen: SeenRequest; body: string }): unknown {
    const type = String(seen.headers["content-type"]);
    const patch = JSON.parse(body) as unknown;
    if (type === "application/apply-patch+yaml") {
      if (seen.query.get("fieldManager") === null) throw new Refusal(400, "BadRequest", "fieldManager is required");
      const exists = this.objects.list(place, `metadata.name=${place.name}`).length > 0;
      if (!exists) return this.objects.create(place, patch as Json);
    }
    const old = this.objects.get(place);
    const isStrategic = type === "application/strategic-merge-patch+json";
    const merged = (): unknown => (isStrategic ? strategicPatch(old, patch) : mergePatch(old, patch));
    const next = type === "application/json-patch+json" ? jsonPatch(old, patch) : merged();
    return this.objects.replace(place, next as Json, subresource);
  }

  private list(place: Place, query: URLSearchParams): unknown {
    const all = this.objects.list(place, query.get("fieldSelector") ?? "");
    const limit = Number(query.get("limit") ?? "0") || all.length;
    const start = Number(query.get("continue") ?? "0");
    const next = start + limit < all.length ? { continue: String(start + limit) } : {};
    return {
      kind: "List",
      apiVersion: "v1",
      metadata: { resourceVersion: String(this.objects.version), ...next },
      items: all.slice(start, start + limit),
    };
  }

  private watch(place: Place, query: URLSearchParams, response: Http2ServerResponse): void {
    const selector = query.get("fieldSelector") ?? "";
    const tell = ({ collection, type, object }: StoredEvent): void => {
      if (collection !== place.collection || !matches(object, selector)) return;
      if (place.namespace !== "" && object.metadata.namespace !== place.namespace) return;
      response.write(`${JSON.stringify({ type, object })}\n`);
    };
    const since = Number(query.get("resourceVersion"));
    this.objects.checkVersion(since);
    response.writeHead(200, { "content-type": "application/json" });
    // A head alone is sent only with the first byte of the body.
    response.write("\n");
    const stop = this.objects.follow(since, tell);
    const watch = { response, stop };
    this.watches.add(watch);
    this.acceptedWatches++;
    response.on("close", () => {
      stop();
      this.watches.delete(watch);
    });
  }
}

function tokenStatus({ namespace, name }: Place): Json {
  return { token: `token-of-${namespace}-${name}`, expirationTimestamp: "2026-01-01T01:00:00Z" };
}

function placeOf(path: string): { place: Place | undefined; subresource: string } {
  const match = /^\/(?:api|apis\/[^/]+)\/v1(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(
    path,
  );
  const [, namespace = "", plural, name = "", subresource = ""] = match ?? [];
  const place = plural === undefined ? undefined : { collection: `v1/${plural}`, namespace, name };
  return { place, subresource };
}
