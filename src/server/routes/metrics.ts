import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createGzip } from "node:zlib";
import { jsonAnswer, type RouteAnswer, type RouteRequest, textAnswer } from "../../adapters/net/http-route.ts";
import { messageOf } from "../../lib/errors.ts";
import { ALWAYS, type ApiRoute, nothingBelow, toSlash } from "../api-route.ts";
import { SliMetrics } from "../sli-metrics.ts";

const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";
const NOT_YET = "container and node statistics are not measured by this version of the agent\n";

/** Metrics and statistics of the agent, the node and its containers. */
export const metricsRoutes: readonly ApiRoute[] = [
  {
    path: "/metrics",
    methods: "any",
    gate: ALWAYS,
    summary: "Metrics of the agent itself (Prometheus text).",
    handle: async ({ metrics }) => page(await metrics.agent()),
  },
  {
    path: "/metrics/probes",
    methods: "any",
    gate: ALWAYS,
    summary: "Results and durations of probes (Prometheus text).",
    handle: async ({ metrics }) => page(await metrics.probes()),
  },
  {
    path: "/metrics/slis",
    methods: ["GET", "DELETE"],
    gate: ALWAYS,
    summary: "Whether each health check passes (Prometheus text).",
    handle: ({ checks, slis = new SliMetrics(checks) }, { method }) => {
      if (method === "DELETE") slis.reset();
      return page(slis.page());
    },
  },
  {
    path: "/metrics/cadvisor",
    methods: "any",
    gate: ALWAYS,
    summary: "Metrics of cgroups and the machine, by the names of cAdvisor (Prometheus text).",
    handle: async ({ stats }, request) => {
      if (stats?.cadvisor === undefined) return textAnswer(501, NOT_YET);
      return piecesAnswer(await stats.cadvisor({ signal: request.signal }), request);
    },
  },
  {
    path: "/metrics/resource",
    methods: "any",
    gate: ALWAYS,
    summary: "CPU and memory of node, pods and containers (Prometheus text), at most 10 s old.",
    handle: async ({ stats }, { signal }) =>
      stats?.resource === undefined ? textAnswer(501, NOT_YET) : page(await stats.resource({ signal })),
  },
  {
    path: "/stats/summary",
    methods: ["GET", "POST"],
    gate: ALWAYS,
    query: "only_cpu_and_memory",
    summary: "Usage of node, pods and containers (JSON Summary), at most 10 s old.",
    async handle({ stats }, request) {
      if (stats === undefined) return textAnswer(501, NOT_YET);
      const form =
        request.method === "POST" ? new URLSearchParams((await request.readBody(4096)).toString()) : undefined;
      const wanted = [...request.query.getAll("only_cpu_and_memory"), ...(form?.getAll("only_cpu_and_memory") ?? [])];
      const onlyCpuAndMemory = wanted.length === 1 && wanted[0] === "true";
      try {
        const summary = await stats.summary({ signal: request.signal, onlyCpuAndMemory });
        return { ...jsonAnswer(200, undefined), body: `${JSON.stringify(summary, undefined, 1)}\n` };
      } catch (error) {
        request.signal.throwIfAborted();
        return textAnswer(500, `Internal Error: ${messageOf(error)}\n`);
      }
    },
  },
  toSlash("/stats", ALWAYS),
  nothingBelow("/stats", ALWAYS),
];

/** A page in pieces, compressed if the client takes it: a scraper of many pods does. */
function piecesAnswer(pieces: Iterable<string>, { headers, signal }: RouteRequest): RouteAnswer {
  const accepted = (headers["accept-encoding"] ?? "").split(",").map((one) => one.split(";", 1)[0]?.trim());
  if (!accepted.includes("gzip")) return { status: 200, type: METRICS_TYPE, body: oneByOne(pieces) };
  const zipped = createGzip({ level: constants.Z_BEST_SPEED });
  // The error of an abandoned page reaches who reads it.
  pipeline(Readable.from(oneByOne(pieces)), zipped, { signal }).catch(() => undefined);
  return { status: 200, type: METRICS_TYPE, headers: { "Content-Encoding": "gzip" }, body: zipped };
}

/** A client that reads slower than pieces are made has the next one made when it has read the last. */
async function* oneByOne(pieces: Iterable<string>): AsyncGenerator<string> {
  yield* pieces;
}

function page(body: string): RouteAnswer {
  return { status: 200, type: METRICS_TYPE, body };
}
