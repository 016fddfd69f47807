import type { RuntimePort } from "../../adapters/runtime/port.ts";
import type { agentOptions, OptionStore } from "../../config/index.ts";
import type { Clock } from "../../lib/clock.ts";
import { select } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { observerMetrics } from "../metrics/observer-metrics.ts";
import { Observer, type ObserverHooks } from "./observe.ts";
import { terminationMessage } from "./termination-message.ts";

/** The shortest interval between relists in milliseconds, however short `syncFrequency` is. */
const SHORTEST_RELIST_MS = 1000;

export interface ObserverParts {
  readonly runtime: RuntimePort;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly files: Parameters<typeof terminationMessage>[0];
}

/** The observer with its metrics; it relists at `syncFrequency`. */
export function composeObserver(parts: ObserverParts, hooks: Pick<ObserverHooks, "wake" | "listed">): Observer {
  const { store, files } = parts;
  return new Observer(
    parts,
    { ...observerMetrics(parts), ...hooks, endMessage: (container) => terminationMessage(files, container) },
    select(store.live("syncFrequency"), (options) => Math.max(SHORTEST_RELIST_MS, options.syncFrequency)),
  );
}
