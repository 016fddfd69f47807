import { listenHttp } from "../adapters/net/http-server.ts";
import { KeptListener } from "../adapters/net/kept-listener.ts";
import type { Logger } from "../lib/log.ts";
import { type LocalApiDeps, type LocalApiOptions, localApiRoutes } from "./routes.ts";

export type { AgentConfiguration } from "./agent-config.ts";
export type { AgentInfo, AgentView, LogOpener, LogRequest, Refusal } from "./agent-view.ts";
export { fullName, matchPod, type PodMatch, type WantedPod } from "./match.ts";
export { type LocalApiDeps, type LocalApiOptions, localApiRoutes } from "./routes.ts";
export type { PodChanges } from "./streams.ts";

/** The unix socket of the commands, accessible to its owner only. Its directory must exist. */
export function localApiServer(
  deps: LocalApiDeps & { log: Logger },
  options: LocalApiOptions & { path: string },
): KeptListener {
  const address = { path: options.path, mode: 0o600 };
  const routes = localApiRoutes(deps, options);
  return new KeptListener({ ...deps, listen: () => listenHttp(deps, { address, routes }) }, { name: "local API" });
}
