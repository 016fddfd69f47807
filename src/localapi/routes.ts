import type { HttpRoute, RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import { jsonAnswer } from "../adapters/net/http-route.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { ImageReport } from "../model/image-report.ts";
import type { NodeExplanation } from "../model/node-pressure.ts";
import type { NodeUsageReport } from "../model/node-usage.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import type { PodExplanation } from "../model/step.ts";
import type { TopologyReport } from "../model/topology-report.ts";
import { type AgentConfiguration, configRoutes } from "./agent-config.ts";
import type { AgentInfo, AgentView, LogOpener } from "./agent-view.ts";
import { containerLog, refuse } from "./container-log.ts";
import { fullName, matchPod } from "./match.ts";
import { execStream, portForwardStream, type StreamDeps } from "./pod-streams.ts";
import { eventLines, podLines } from "./streams.ts";

export interface LocalApiDeps {
  readonly view: AgentView;
  readonly logs: LogOpener;
  readonly clock: Clock;
  /** Measures the local storage of a pod, for about a second at most. Missing if it cannot be measured. */
  readonly storage?: (uid: string, options: Abortable) => Promise<PodStorage | undefined>;
  /** The images of the node, and what garbage collection would do with them. Missing if there is no runtime. */
  readonly images?: (options: Abortable) => Promise<ImageReport>;
  /** Explains the pressure of the node. Missing if it is not measured. */
  readonly node?: (options: Abortable) => Promise<NodeExplanation>;
  /** The usage of node and pods. Missing if it is not measured. */
  readonly usage?: (options: Abortable) => Promise<NodeUsageReport>;
  /** A new login link of the page; undefined while its port is closed. Missing if there is no page. */
  readonly pageLink?: () => string | undefined;
  /** The processors and the memory of the machine, and who has what of them. Missing if they were not read. */
  readonly topology?: () => TopologyReport;
  /** Missing if there is no runtime. */
  readonly streams?: StreamDeps | undefined;
  /** Missing if the configuration cannot be reloaded. */
  readonly config?: AgentConfiguration | undefined;
}

export interface LocalApiOptions {
  /** The suffix of static pods' names. */
  readonly nodeName: string;
  readonly version: string;
}

const NO_PAGE = "the page is not served: --cadvisor-port is 0, or the port is in use";
const LINES_TYPE = "application/x-ndjson";

/** The routes of the commands. */
export function localApiRoutes(deps: LocalApiDeps, options: LocalApiOptions): HttpRoute[] {
  const { view } = deps;
  const withPod =
    (answer: (pod: PodExplanation, request: RouteRequest) => RouteAnswer | Promise<RouteAnswer>) =>
    (request: RouteRequest) => {
      const { name = "", namespace } = request.params;
      const pod = findPod(view, { name, namespace }, options.nodeName);
      return "status" in pod ? pod : answer(pod, request);
    };
  const explain = withPod(async (pod, { query, signal }) => {
    const storage = query.get("storage") === "true" ? await deps.storage?.(pod.uid, { signal }) : undefined;
    return jsonAnswer(200, storage === undefined ? pod : { ...pod, storage });
  });
  const logs = withPod((pod, request) => containerLog(deps, pod, request));
  const exec = withPod((pod, request) => execStream(deps.streams, pod, request));
  const forward = withPod((pod, request) => portForwardStream(deps.streams, pod, request));
  const info: AgentInfo = { pid: process.pid, version: options.version, nodeName: options.nodeName };
  return [
    get("/v1/agent", () => jsonAnswer(200, info)),
    get("/v1/node", async ({ signal }) => {
      const node = await deps.node?.({ signal });
      return node === undefined ? refuse(404, "this agent does not measure its node") : jsonAnswer(200, node);
    }),
    get("/v1/usage", async ({ signal }) => {
      const usage = await deps.usage?.({ signal });
      return usage === undefined ? refuse(404, "this agent does not measure usage") : jsonAnswer(200, usage);
    }),
    get("/v1/topology", () => {
      const topology = deps.topology?.();
      return topology === undefined ? refuse(404, "this agent does not know its topology") : jsonAnswer(200, topology);
    }),
    get("/v1/pods", () => jsonAnswer(200, view.summaries())),
    get("/v1/pods/:name", explain),
    get("/v1/pods/:namespace/:name", explain),
    get("/v1/logs/:name", logs),
    get("/v1/logs/:namespace/:name", logs),
    post("/v1/exec/:name", exec),
    post("/v1/exec/:namespace/:name", exec),
    post("/v1/port-forward/:name", forward),
    post("/v1/port-forward/:namespace/:name", forward),
    post("/v1/page", () => {
      const link = deps.pageLink?.();
      return link === undefined ? refuse(404, NO_PAGE) : jsonAnswer(200, { link });
    }),
    get("/v1/events", ({ query, signal }) => {
      const since = Number(query.get("since") ?? 0);
      if (!Number.isSafeInteger(since) || since < 0)
        return refuse(400, "since must be the sequence number of an event");
      const wants = { watch: query.get("watch") === "true", progress: query.get("progress") === "true" };
      const body = eventLines(deps, { since, ...wants }, { signal });
      return { status: 200, type: LINES_TYPE, body };
    }),
    get("/v1/images", ({ signal }) => imageAnswer(deps, { signal })),
    get("/v1/watch", ({ signal }) => ({ status: 200, type: LINES_TYPE, body: podLines(deps, { signal }) })),
    ...configRoutes(deps.config),
  ];
}

function get(path: string, handle: HttpRoute["handle"]): HttpRoute {
  return { methods: ["GET"], path, handle };
}

function post(path: string, handle: HttpRoute["handle"]): HttpRoute {
  return { methods: ["POST"], path, handle };
}

async function imageAnswer({ images }: LocalApiDeps, { signal }: Abortable): Promise<RouteAnswer> {
  if (images === undefined) return refuse(404, "there is no runtime to list images of");
  try {
    return jsonAnswer(200, await images({ signal }));
  } catch (error) {
    signal.throwIfAborted();
    return refuse(503, `list images: ${messageOf(error)}`);
  }
}

function findPod(
  view: AgentView,
  wanted: { name: string; namespace?: string },
  nodeName: string,
): PodExplanation | RouteAnswer {
  const match = matchPod(view.summaries(), wanted, nodeName);
  const shown = wanted.namespace === undefined ? wanted.name : fullName({ ...wanted, namespace: wanted.namespace });
  switch (match.kind) {
    case "none":
      return refuse(404, `pod "${shown}" not found`, match.near);
    case "several":
      return refuse(409, `pod name "${shown}" is ambiguous`, match.names);
    case "found":
      return view.explain(match.pod.uid) ?? refuse(404, `pod "${shown}" not found: it was removed`);
  }
}
