import { bearerToken } from "../../adapters/net/bearer-token.ts";
import type { HttpRoute, RouteAnswer, RouteRequest } from "../../adapters/net/http-route.ts";
import { listenHttp } from "../../adapters/net/http-server.ts";
import { KeptListener } from "../../adapters/net/kept-listener.ts";
import type { TlsMaterial } from "../../adapters/net/tls-listener.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Live } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { ADMINISTRATORS } from "../auth/access.ts";
import type { RequestUser } from "../kinds/kind.ts";
import { statusAnswer } from "../rest/render.ts";
import { unauthorized } from "../status/status-error.ts";
import type { RequestMemory } from "./request-memory.ts";

/** What the listeners serve. */
export interface Served {
  handle(request: RouteRequest, user: RequestUser): Promise<RouteAnswer>;
  reviewToken(token: string): RequestUser | undefined;
}

export interface ListenerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly served: Served;
  /** Shared by the listeners of one server. */
  readonly memory: RequestMemory;
}

/** Whoever can open the socket is root. */
const SOCKET_USER: RequestUser = { name: "root", groups: [ADMINISTRATORS, "system:authenticated"] };
const ANONYMOUS: RequestUser = { name: "system:anonymous", groups: ["system:unauthenticated"] };
/** Any pod and any user of the machine can connect: their headers must not fill the memory. Each watch is a connection. */
const LIMITS = { connections: 1000, headerBytes: 128 * 1024 };
/** What anybody may ask: whether there is a server, and which. */
const PUBLIC = ["/healthz", "/livez", "/readyz", "/version"];

/** The unix socket of the API: no certificates, because only its owner can open it. */
export function apiSocket(deps: ListenerDeps, path: string): KeptListener {
  const routes = everyPath((request) => serve(deps, request, SOCKET_USER));
  const listen = () => listenHttp(deps, { address: { path, mode: 0o600 }, routes });
  return new KeptListener({ ...deps, listen }, { name: "API socket" });
}

export interface ApiPortOptions {
  readonly host: string;
  readonly port: number;
  /** The client authority is the one that signed the certificate of the kubeconfig. */
  readonly material: Live<TlsMaterial>;
}

/** The TLS port of the API: clients have a certificate of its authority, or a token of a service account. */
export function apiPort(deps: ListenerDeps, { host, port, material }: ApiPortOptions): KeptListener {
  const routes = everyPath(async (request) => {
    const user = authenticate(deps, request);
    return user === undefined ? statusAnswer(unauthorized().status) : serve(deps, request, user);
  });
  const tls = { material, minVersion: "TLSv1.2" } as const;
  const address = { host, port, option: "apiserver-port" };
  return new KeptListener(
    { ...deps, listen: () => listenHttp(deps, { address, routes, tls, limits: LIMITS }) },
    { name: "API" },
  );
}

function serve({ served, memory }: ListenerDeps, request: RouteRequest, user: RequestUser): Promise<RouteAnswer> {
  return served.handle(memory.counted(request, user), user);
}

function everyPath(handle: HttpRoute["handle"]): readonly HttpRoute[] {
  return ["/", "/*"].map((path) => ({ path, methods: "any", handle }));
}

function authenticate(
  { clock, served }: Pick<ListenerDeps, "clock" | "served">,
  request: RouteRequest,
): RequestUser | undefined {
  const { peer, headers, path } = request;
  if (peer?.isTrusted(clock.now().wall) && peer.commonName !== "") {
    return { name: peer.commonName, groups: [...peer.organizations, "system:authenticated"] };
  }
  const token = bearerToken(headers);
  if (token !== undefined) return served.reviewToken(token);
  return PUBLIC.some((open) => path === open || path.startsWith(`${open}/`)) ? ANONYMOUS : undefined;
}
