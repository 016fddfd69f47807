import { ALWAYS, type ApiRoute } from "./api-route.ts";
import { healthAnswer, singleAnswer } from "./health.ts";
import { aboutRoutes } from "./routes/about.ts";
import { containerLogRoutes } from "./routes/container-logs.ts";
import { debugRoutes } from "./routes/debug.ts";
import { metricsRoutes } from "./routes/metrics.ts";
import { podRoutes } from "./routes/pods.ts";
import { runRoutes } from "./routes/run.ts";
import { streamRoutes } from "./routes/streams.ts";
import { systemLogRoutes } from "./routes/system-logs.ts";

/** The checks that every agent has; each is a path of its own. */
export const CHECK_NAMES = ["ping", "log", "syncloop", "device-plugin"] as const;

const healthRows: readonly ApiRoute[] = [
  {
    path: "/healthz",
    methods: "any",
    gate: ALWAYS,
    query: "verbose, exclude",
    summary: "Whether the agent works, over all checks.",
    handle: ({ checks }, request) => healthAnswer(checks, request),
  },
  ...CHECK_NAMES.map(
    (name): ApiRoute => ({
      path: `/healthz/${name}`,
      methods: "any",
      gate: ALWAYS,
      summary: `The check ${name} alone.`,
      handle: ({ checks }) => singleAnswer(checks, name),
    }),
  ),
];

/** Every endpoint of the main port (10250); those without a gate are on the read-only port (10255) too. */
export const API_ROUTES: readonly ApiRoute[] = [
  ...healthRows,
  ...podRoutes,
  ...metricsRoutes,
  ...containerLogRoutes,
  ...streamRoutes,
  ...runRoutes,
  ...aboutRoutes,
  ...systemLogRoutes,
  ...debugRoutes,
];
