export { accessOf } from "./access.ts";
export type {
  AboutAgent,
  ApiDeps,
  ApiSwitches,
  Debugging,
  LogReader,
  MetricsPages,
  PodsView,
  StatsPages,
  StreamRuntime,
  SystemLogs,
} from "./api-deps.ts";
export { Authenticator, type TokenReviewer, type User } from "./authenticate.ts";
export { type AccessQuestion, type AccessReviewer, Authorizer } from "./authorize.ts";
export { httpApiPage } from "./docs.ts";
export { accessGuard } from "./guard.ts";
export { type HealthCheck, ping } from "./health.ts";
export { RequestMetrics } from "./request-metrics.ts";
export { healthServer, mainServer, readOnlyServer } from "./servers.ts";
export { API_ROUTES } from "./table.ts";
