import Router from "find-my-way";
import { type HttpRoute, type RouteAnswer, type RouteRequest, readTarget, textAnswer } from "./http-route.ts";

/** A request before its route is resolved. */
export type RawRequest = Pick<RouteRequest, "method" | "headers" | "peer" | "readBody" | "signal" | "expectUpgrade"> & {
  readonly target: string;
};

/** Authenticates and authorizes a request: an answer rejects it. Called once the path is known to exist. */
export type Guard = (request: RouteRequest) => Promise<RouteAnswer | undefined>;

export type Dispatch = (request: RawRequest) => Promise<RouteAnswer>;

/**
 * Finds the route of a request. An unknown path is a 404 without authentication; on a known path the guard comes first,
 * also before a wrong method. The router only knows paths; methods are checked here, so that a wrong one is a 405.
 */
export function dispatcher(routes: readonly HttpRoute[], guard?: Guard): Dispatch {
  const router = Router({ maxParamLength: 1024, caseSensitive: true });
  const byPath = new Map<string, HttpRoute[]>();
  for (const route of routes) byPath.set(route.path, [...(byPath.get(route.path) ?? []), route]);
  for (const [path, candidates] of byPath) router.on("GET", path, () => undefined, candidates);

  return async ({ target, ...raw }) => {
    const read = readTarget(target);
    if ("refused" in read) return textAnswer(400, `400 Bad Request: ${read.refused}\n`);
    const found = router.find("GET", read.path);
    if (found === null) return textAnswer(404, "404 page not found\n");
    const request: RouteRequest = {
      ...raw,
      path: decodeURIComponent(read.path),
      params: found.params,
      query: read.query,
    };
    const refusal = await guard?.(request);
    if (refusal !== undefined) return refusal;
    const candidates = found.store as readonly HttpRoute[]; // reason: stored by the line above
    const route = candidates.find(({ methods }) => methods === "any" || methods.includes(raw.method));
    return route === undefined ? textAnswer(405, "405: Method Not Allowed") : route.handle(request);
  };
}
