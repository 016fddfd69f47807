import type { HttpRoute, RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import { textAnswer } from "../adapters/net/http-route.ts";

/** A named health check. It must be cheap: supervisors call it every second. */
export interface HealthCheck {
  readonly name: string;
  /** What is wrong, and since when; undefined if nothing is. */
  problem(): string | undefined;
}

/** Never fails: an answer proves that the process is alive. */
export const ping: HealthCheck = { name: "ping", problem: () => undefined };

/**
 * `/healthz` and `/healthz/ping` of the health port, for any method: 200 while the process is alive: supervisors
 * restart the agent on anything else, which does not help an unavailable runtime. `?verbose` lists the problems.
 */
export function livenessRoutes(checks: readonly HealthCheck[]): HttpRoute[] {
  return [
    {
      methods: "any",
      path: "/healthz",
      handle: ({ query }) => textAnswer(200, query.has("verbose") ? inWords(checks) : "ok"),
    },
    { methods: "any", path: "/healthz/ping", handle: () => textAnswer(200, "ok") },
  ];
}

function inWords(checks: readonly HealthCheck[]): string {
  const lines = checks.map((check) => {
    const problem = check.problem();
    return problem === undefined ? `[+]${check.name} ok\n` : `[-]${check.name} failing: ${problem}\n`;
  });
  return `${lines.join("")}healthz check passed\n`;
}

/** `/healthz` over all checks. */
export function healthAnswer(checks: readonly HealthCheck[], { query }: RouteRequest): RouteAnswer {
  const excluded = new Set(query.getAll("exclude"));
  const lines: string[] = [];
  let isHealthy = true;
  for (const check of checks) {
    if (excluded.delete(check.name)) lines.push(`[+]${check.name} excluded: ok`);
    else if (check.problem() === undefined) lines.push(`[+]${check.name} ok`);
    else {
      isHealthy = false;
      lines.push(`[-]${check.name} failed: reason withheld`);
    }
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((name) => JSON.stringify(name)).join(", ");
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}`);
  }
  if (!isHealthy) return textAnswer(500, `${[...lines, "healthz check failed"].join("\n")}\n`);
  if (!query.has("verbose")) return textAnswer(200, "ok");
  return textAnswer(200, `${[...lines, "healthz check passed"].join("\n")}\n`);
}

/** `/healthz/NAME`. */
export function singleAnswer(checks: readonly HealthCheck[], name: string): RouteAnswer {
  const check = checks.find((one) => one.name === name);
  if (check === undefined) return textAnswer(404, "404 page not found\n");
  const problem = check.problem();
  return problem === undefined ? textAnswer(200, "ok") : textAnswer(500, `internal server error: ${problem}\n`);
}
