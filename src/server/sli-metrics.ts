import { metricsText, type Sample } from "../lib/metrics-text.ts";
import type { HealthCheck } from "./health.ts";

/** On every page of metrics of the agent itself. */
export const START_TIME = "process_start_time_seconds";

const STATUSES = ["success", "error"] as const;
type Counts = Record<(typeof STATUSES)[number], number>;

/** Counts how often each health check passed and failed, for `/metrics/slis`. */
export class SliMetrics {
  private readonly counts = new Map<string, Counts>();

  constructor(private readonly checks: readonly HealthCheck[]) {}

  /** The checks, counted each time that they are made. */
  counted(): readonly HealthCheck[] {
    return this.checks.map((check) => {
      return { name: check.name, problem: () => this.count(check.name, check.problem()) };
    });
  }

  /** Forgets all counts. */
  reset(): void {
    this.counts.clear();
  }

  /** The page by the names of Kubernetes. */
  page(): string {
    const labels = (name: string): Sample["labels"] => [
      ["name", name],
      ["type", "healthz"],
    ];
    const now = this.checks.map((check): Sample => {
      return { labels: labels(check.name), value: check.problem() === undefined ? 1 : 0 };
    });
    const ever = [...this.counts].flatMap(([name, counts]) =>
      STATUSES.map((status): Sample => ({ labels: [...labels(name), ["status", status]], value: counts[status] })),
    );
    return metricsText([
      {
        name: "kubernetes_healthcheck",
        help: "[STABLE] This metric records the result of a single healthcheck.",
        type: "gauge",
        collect: () => now,
      },
      {
        name: "kubernetes_healthchecks_total",
        help: "[STABLE] This metric records the results of all healthcheck.",
        type: "counter",
        collect: () => ever,
      },
      {
        name: START_TIME,
        help: "[ALPHA] Start time of the process since unix epoch in seconds.",
        type: "gauge",
        collect: () => [{ labels: [], value: performance.timeOrigin / 1000 }],
      },
    ]);
  }

  private count(name: string, problem: string | undefined): string | undefined {
    const counts = this.counts.get(name) ?? { success: 0, error: 0 };
    counts[problem === undefined ? "success" : "error"]++;
    this.counts.set(name, counts);
    return problem;
  }
}
