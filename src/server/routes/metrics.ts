import { jsonAnswer, type RouteAnswer, textAnswer } from "../../adapters/net/http-route.ts";
import { messageOf } from "../../lib/errors.ts";
import { TEXT_TYPE } from "../../lib/metrics-text.ts";
import { ALWAYS, type ApiRoute, nothingBelow, toSlash } from "../api-route.ts";
import { SliMetrics } from "../sli-metrics.ts";
import { oldStatsRoutes } from "./cadvisor.ts";
import { pageAnswer, piecesAnswer } from "./pieces.ts";

const NOT_YET = "container and node statistics are not measured by this version of the agent\n";

/** Metrics and statistics of the agent, the node and its containers. */
export const metricsRoutes: readonly ApiRoute[] = [
  {
    path: "/metrics",
    methods: "any",
    gate: ALWAYS,
    summary: "Metrics of the agent itself (Prometheus text).",
    handle: async ({ metrics }, request) => pageAnswer(await metrics.agent(), request),
  },
  {
    path: "/metrics/probes",
    methods: "any",
    gate: ALWAYS,
    summary: "Results and durations of probes (Prometheus text).",
    handle: async ({ metrics }, request) => pageAnswer(await metrics.probes(), request),
  },
  {
    path: "/metrics/slis",
    methods: ["GET", "DELETE"],
    gate: ALWAYS,
    summary: "Whether each health check passes (Prometheus text).",
    handle: ({ checks, slis = new SliMetrics(checks) }, { method }) => {
      if (method !== "DELETE") return page(slis.page());
      slis.reset();
      return textAnswer(200, "metrics reset\n");
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
    handle: async ({ stats }, request) =>
      stats?.resource === undefined
        ? textAnswer(501, NOT_YET)
        : pageAnswer(await stats.resource({ signal: request.signal }), request),
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
        const body = await stats.summary({ signal: request.signal, onlyCpuAndMemory });
        return { ...jsonAnswer(200, undefined), body };
      } catch (error) {
        request.signal.throwIfAborted();
        return textAnswer(500, `Internal Error: ${messageOf(error)}\n`);
      }
    },
  },
  ...oldStatsRoutes,
  toSlash("/spec", ALWAYS),
  toSlash("/stats", ALWAYS),
  nothingBelow("/stats", ALWAYS),
];

function page(body: string): RouteAnswer {
  return { status: 200, type: TEXT_TYPE, body };
}
