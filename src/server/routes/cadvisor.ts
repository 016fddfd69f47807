import {
  type HttpRoute,
  jsonAnswer,
  type RouteAnswer,
  type RouteRequest,
  textAnswer,
} from "../../adapters/net/http-route.ts";
import { messageOf } from "../../lib/errors.ts";
import type { StatsPages } from "../api-deps.ts";
import { ALWAYS, type ApiRoute } from "../api-route.ts";
import { piecesAnswer } from "./pieces.ts";

/** The largest body of a request that is read, in bytes. */
const MOST_BODY = 64 * 1024;
const NOT_MEASURED = "container and node statistics are not measured\n";

/** Paths of kubelets 1.3 to 1.20: the machine, and cgroups in the shape of cAdvisor's API 1.x. */
export const oldStatsRoutes: readonly ApiRoute[] = [
  {
    path: "/spec/",
    methods: ["GET"],
    gate: ALWAYS,
    summary: "The machine (JSON MachineInfo of cAdvisor 1.x).",
    handle: ({ stats }, request) => apiAnswer(stats, "/api/v1.3/machine", request),
  },
  {
    path: "/stats/",
    methods: ["GET", "POST"],
    gate: ALWAYS,
    summary: "The root cgroup (JSON ContainerInfo of cAdvisor 1.x).",
    handle: ({ stats }, request) => apiAnswer(stats, "/api/v1.3/containers/", request),
  },
  {
    path: "/stats/container",
    methods: ["GET", "POST"],
    gate: ALWAYS,
    summary: "Cgroups by path (map of ContainerInfo); the body chooses: `containerName`, `subcontainers`.",
    handle: ({ stats }, request) => cgroupsAnswer(stats, request),
  },
  {
    path: "/stats/:pod/:container",
    methods: ["GET", "POST"],
    gate: ALWAYS,
    summary: "A container of a pod in the namespace `default` (JSON ContainerInfo).",
    handle: ({ stats }, request) => containerAnswer(stats, request),
  },
  {
    path: "/stats/:namespace/:pod/:uid/:container",
    methods: ["GET", "POST"],
    gate: ALWAYS,
    summary: "A container of a pod (JSON ContainerInfo).",
    handle: ({ stats }, request) => containerAnswer(stats, request),
  },
];

const PATHS = ["/api/v1.3/containers/", "/api/v1.3/machine", "/api/v2.1/stats/", "/api/v2.1/summary/", "/metrics"];

/** The routes of the cAdvisor port (4194); without a page, the root lists them. */
export function cadvisorRoutes(stats: StatsPages, { hasPage }: { readonly hasPage: boolean }): readonly HttpRoute[] {
  const text = (path: string, body: () => string): HttpRoute => {
    return { path, methods: "any", handle: () => textAnswer(200, body()) };
  };
  const api = (path: string): HttpRoute => {
    return { path, methods: ["GET", "POST"], handle: (request) => apiAnswer(stats, request.path, request) };
  };
  return [
    ...(hasPage ? [] : [text("/", () => `${[...PATHS, "/validate/", "/healthz"].join("\n")}\n`)]),
    text("/healthz", () => "ok"),
    { path: "/validate", methods: "any", handle: (request) => validateAnswer(stats, request) },
    { path: "/validate/", methods: "any", handle: (request) => validateAnswer(stats, request) },
    {
      path: "/metrics",
      methods: "any",
      handle: async (request) =>
        stats.cadvisor === undefined
          ? textAnswer(501, NOT_MEASURED)
          : piecesAnswer(await stats.cadvisor({ signal: request.signal }), request),
    },
    api("/api"),
    api("/api/*"),
  ];
}

async function apiAnswer(stats: StatsPages | undefined, path: string, request: RouteRequest): Promise<RouteAnswer> {
  if (stats?.api === undefined) return textAnswer(501, NOT_MEASURED);
  const { query, signal } = request;
  try {
    const result = await stats.api({ path, query }, { signal });
    return "json" in result ? jsonAnswer(200, result.json) : textAnswer(result.status, `${result.text}\n`);
  } catch (error) {
    return failed(error, signal);
  }
}

async function cgroupsAnswer(stats: StatsPages | undefined, request: RouteRequest): Promise<RouteAnswer> {
  if (stats?.api === undefined) return textAnswer(501, NOT_MEASURED);
  const { query, signal } = request;
  try {
    const { containerName = "/", subcontainers = false } = parsed(await request.readBody(MOST_BODY));
    const kind = subcontainers === true ? "subcontainers" : "containers";
    const result = await stats.api({ path: `/api/v1.3/${kind}${String(containerName)}`, query }, { signal });
    if (!("json" in result)) return textAnswer(result.status, `Internal Error: ${result.text}\n`);
    const found = Array.isArray(result.json) ? result.json : [result.json];
    return jsonAnswer(200, Object.fromEntries(found.map((one: { name: string }) => [one.name, one])));
  } catch (error) {
    return failed(error, signal);
  }
}

function parsed(body: Buffer): Readonly<Record<string, unknown>> {
  if (body.length === 0) return {};
  const value: unknown = JSON.parse(body.toString());
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}; // reason: checked
}

async function containerAnswer(stats: StatsPages | undefined, request: RouteRequest): Promise<RouteAnswer> {
  if (stats?.container === undefined) return textAnswer(501, NOT_MEASURED);
  const { namespace = "default", pod = "", uid, container = "" } = request.params;
  const found = await stats.container({ namespace, pod, uid, container }, { signal: request.signal });
  return found === undefined ? textAnswer(404, "404: Page Not Found") : jsonAnswer(200, found);
}

async function validateAnswer(stats: StatsPages, { query, signal }: RouteRequest): Promise<RouteAnswer> {
  const result = await stats.api?.({ path: "/api/v2.0/attributes", query }, { signal });
  const facts = result !== undefined && "json" in result ? (result.json as Record<string, unknown>) : {}; // reason: an object
  const lines = [
    `cAdvisor version: ${String(facts["cadvisor_version"] ?? "")}`,
    `OS version: ${String(facts["container_os_version"] ?? "")}`,
    `Kernel version: [Supported and recommended]\n\tKernel version is ${String(facts["kernel_version"] ?? "")}`,
    "Cgroup setup: [Supported and recommended]",
  ];
  return textAnswer(200, `${lines.join("\n\n")}\n`);
}

function failed(error: unknown, signal: AbortSignal): RouteAnswer {
  signal.throwIfAborted();
  return textAnswer(500, `Internal Error: ${messageOf(error)}\n`);
}
