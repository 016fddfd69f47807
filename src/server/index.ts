export { type HealthCheck, healthRoutes, ping } from "./health.ts";
export { type ReadOnlyDeps, readOnlyRoutes } from "./read-only.ts";
export { healthServer, readOnlyServer } from "./servers.ts";
