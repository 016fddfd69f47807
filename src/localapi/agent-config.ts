import type { HttpRoute, RouteAnswer } from "../adapters/net/http-route.ts";
import { jsonAnswer } from "../adapters/net/http-route.ts";
import type { ConfigReport } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { CodedError } from "../lib/errors.ts";
import { refuse } from "./container-log.ts";

/** The configuration of the running agent, for its commands. Rejections are `CodedError`s. */
export interface AgentConfiguration {
  report(): ConfigReport;
  /** Reloads the files, as SIGHUP does. */
  reload(abortable: Abortable): Promise<unknown>;
  /** Makes a file the dynamic configuration, on trial. */
  apply(file: string, abortable: Abortable): Promise<unknown>;
  /** Rolls back to the last known good one. */
  rollback(options: { readonly toLocal: boolean }, abortable: Abortable): Promise<unknown>;
  history(abortable: Abortable): Promise<unknown>;
}

/** Without a configuration (`kubelet up`) the routes answer 501. */
export function configRoutes(config: AgentConfiguration | undefined): HttpRoute[] {
  const route = (
    method: "GET" | "POST",
    path: string,
    answer: (config: AgentConfiguration, request: Parameters<HttpRoute["handle"]>[0]) => unknown,
  ): HttpRoute => ({
    methods: [method],
    path,
    async handle(request): Promise<RouteAnswer> {
      if (config === undefined)
        return refuse(404, "this agent was started by kubelet up, which has no configuration file");
      try {
        return jsonAnswer(200, await answer(config, request));
      } catch (error) {
        if (error instanceof CodedError) return refuse(409, error.message);
        throw error;
      }
    },
  });
  return [
    route("GET", "/v1/config", (it) => it.report()),
    route("POST", "/v1/config/reload", (it, { signal }) => it.reload({ signal })),
    route("POST", "/v1/config/apply", (it, { signal, query }) => it.apply(query.get("file") ?? "", { signal })),
    route("POST", "/v1/config/rollback", (it, { signal, query }) =>
      it.rollback({ toLocal: query.get("toLocal") === "true" }, { signal }),
    ),
    route("GET", "/v1/config/history", (it, { signal }) => it.history({ signal })),
  ];
}
