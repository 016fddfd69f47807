import type { RuntimeMetrics, RuntimeStatsPort } from "../adapters/runtime/port.ts";
import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { RuntimeUsages } from "./sampler.ts";

/** Time limit of a call: cgroups are read instead of what is not there by then. */
const LIMIT_MS = 2000;

/** Asks the runtime for what it measures. Rejects only for an abort: a runtime that cannot tell leaves it to cgroups. */
export class RuntimeStats {
  private isFailing = false;

  constructor(
    private readonly deps: { readonly clock: Clock; readonly log: Logger; readonly port: RuntimeStatsPort },
  ) {}

  /** Usage of all sandboxes and containers by id; undefined if the runtime does not answer. */
  async usages(options: Abortable): Promise<RuntimeUsages | undefined> {
    const found = await this.ask(options, (limited) => this.deps.port.usages({ signal: limited }));
    return found && new Map(found.map((one) => [one.id, one]));
  }

  metrics(options: Abortable): Promise<RuntimeMetrics | undefined> {
    return this.ask(options, (limited) => this.deps.port.metrics({ signal: limited }));
  }

  private async ask<T>({ signal }: Abortable, call: (limited: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { clock, log } = this.deps;
    try {
      const answer = await withScope([signal], { clock, ms: LIMIT_MS }, call);
      this.isFailing = false;
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      if (!this.isFailing)
        log.warn("Failed to get statistics from runtime, using cgroups", { error: messageOf(error) });
      this.isFailing = true;
      return undefined;
    }
  }
}
