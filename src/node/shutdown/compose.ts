import { Logind } from "../../adapters/dbus/logind.ts";
import { machineInfo } from "../../adapters/host/machine.ts";
import { StateFile } from "../../adapters/host/state-file.ts";
import type { agentOptions, OptionStore } from "../../config/index.ts";
import { type LiveValue, select } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import type { Loop } from "../../lib/loop.ts";
import type { Metrics } from "../../lib/metrics.ts";
import { NodeShutdown } from "./node-shutdown.ts";
import { type ShutdownPeriod, shutdownPeriods } from "./plan.ts";
import { PodAdoption, type PodAdoptionDeps } from "./pod-adoption.ts";
import { type PodPool, shutdownPods } from "./pods.ts";
import { decodeShutdownState, encodeShutdownState, type ShutdownDocument, type ShutdownState } from "./state.ts";

export interface ShutdownDeps extends PodAdoptionDeps {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly pool: PodPool & PodAdoptionDeps["pool"];
  /** True while the node shuts down. */
  readonly shutdown: LiveValue<boolean>;
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

/** The loop that ends pods in order when the machine shuts down. */
export function composeShutdown(deps: ShutdownDeps): Loop {
  const { clock, log, metrics, store, event } = deps;
  const path = `${store.current.rootDir}/graceful_node_shutdown_state`;
  const isState = (document: unknown): document is ShutdownDocument => decodeShutdownState(document) !== undefined;
  const file = new StateFile({ path, log }, (document) => (isState(document) ? document : undefined));
  const periods = select(
    store.live("shutdownGracePeriod", "shutdownGracePeriodCriticalPods", "shutdownGracePeriodByPodPriority"),
    cached(() => shutdownPeriods(store.current)),
  );
  const adoption = new PodAdoption(deps);
  const shutdown = new NodeShutdown(
    {
      clock,
      log,
      event,
      status: deps.shutdown,
      pods: shutdownPods(deps.pool),
      known: (options) => adoption.done(options),
      connect: ({ signal }) => Logind.connect({ clock, signal, trustsAnyone: store.current.trustShutdownSignals }),
      bootId: machineInfo().bootId,
      state: {
        load: () => decodeShutdownState(file.load()),
        save: (state) => file.save(encodeShutdownState(state)),
      },
      recorded: shutdownMetrics(metrics),
    },
    periods,
  );
  const run = (signal: AbortSignal): Promise<void> => {
    adoption.follow({ signal });
    return shutdown.run(signal);
  };
  return { name: "node shutdown", run };
}

/** The same list as long as it has the same values: listeners are called only for a change. */
function cached(read: () => readonly ShutdownPeriod[]): () => readonly ShutdownPeriod[] {
  let last: readonly ShutdownPeriod[] = [];
  return () => {
    const next = read();
    if (JSON.stringify(next) !== JSON.stringify(last)) last = next;
    return last;
  };
}

/** Declares the times of the last shutdown, by the names of Kubernetes; the answer records them. */
function shutdownMetrics(metrics: Metrics): (state: ShutdownState) => void {
  const start = metrics.gauge(
    "kubelet_graceful_shutdown_start_time_seconds",
    "Start of the last graceful shutdown as Unix time in seconds.",
  );
  const end = metrics.gauge(
    "kubelet_graceful_shutdown_end_time_seconds",
    "End of the last graceful shutdown as Unix time in seconds; 0 if it did not end.",
  );
  return ({ startedAt, endedAt = 0 }) => {
    start.set(Math.floor(startedAt / 1000));
    end.set(Math.floor(endedAt / 1000));
  };
}
