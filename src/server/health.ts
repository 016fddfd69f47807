import type { HttpAnswer, HttpRequest, HttpRoute } from "../adapters/net/http-route.ts";
import { textAnswer } from "../adapters/net/http-route.ts";

/** One named check; `problem` tells what is wrong now, or nothing. It must be cheap: supervisors ask every second. */
export interface HealthCheck {
  readonly name: string;
  problem(): string | undefined;
}

/** Never fails: that the process answers is the answer. */
export const ping: HealthCheck = { name: "ping", problem: () => undefined };

/**
 * `/healthz` over all checks and `/healthz/NAME` for each, for any method. The health port passes only `ping`:
 * supervisors restart the agent on anything but 200, and a runtime that is away is no reason to.
 */
export function healthRoutes(checks: readonly HealthCheck[]): HttpRoute[] {
  return [
    { methods: "any", path: "/healthz", handle: (request) => overall(checks, request) },
    ...checks.map(
      (check): HttpRoute => ({ methods: "any", path: `/healthz/${check.name}`, handle: () => single(check) }),
    ),
  ];
}

function overall(checks: readonly HealthCheck[], { query }: HttpRequest): HttpAnswer {
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

function single(check: HealthCheck): HttpAnswer {
  const problem = check.problem();
  return problem === undefined ? textAnswer(200, "ok") : textAnswer(500, `internal server error: ${problem}\n`);
}
