import type { agentOptions, OptionStore } from "../config/index.ts";
import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { fixed, type Live, select } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Tracer } from "../lib/tracer.ts";
import { eventMetrics, runtimeCallMetrics } from "./cri/call-metrics.ts";
import { CallsInFlight } from "./cri/calls-in-flight.ts";
import { CriImages } from "./cri/cri-images.ts";
import { CriRuntime } from "./cri/cri-runtime.ts";
import { tracedCalls } from "./grpc/traced-calls.ts";
import type { ImagePort, RuntimePort, RuntimeVersion } from "./runtime/port.ts";

/** A container runtime behind its ports. */
export interface RuntimeConnection {
  readonly runtime: RuntimePort;
  readonly images: ImagePort;
  /** Calls that have not ended. */
  readonly calls: CallsInFlight;
  close(): void;
}

export interface RuntimeEndpoint {
  /** `unix:///path` or a bare path. */
  readonly endpoint: string;
  /** Of the image service; empty for the same endpoint. */
  readonly imageEndpoint?: string;
  /** Milliseconds that a call may take. */
  readonly requestTimeoutMs: Live<number>;
}

/**
 * Connects to the runtime at an endpoint. The only place that knows which runtimes there are: another one is a folder
 * beside `cri/` and a line here. Never fails: an endpoint that does not answer is connected to at the next call.
 */
export function connectRuntime(
  deps: {
    readonly clock: Clock;
    readonly log: Logger;
    readonly metrics?: Metrics;
    readonly tracer?: Tracer | undefined;
  },
  { endpoint, imageEndpoint, requestTimeoutMs }: RuntimeEndpoint,
): RuntimeConnection {
  const { clock, log, metrics, tracer } = deps;
  const calls = new CallsInFlight(clock);
  const measured = metrics && { onCall: runtimeCallMetrics(metrics), onEvents: eventMetrics(metrics) };
  const shared = { clock, log, calls, ...measured, traced: tracer && tracedCalls(tracer) };
  const runtime = new CriRuntime(shared, { endpoint, requestTimeoutMs });
  const images = new CriImages(shared, { endpoint: imageEndpoint || endpoint, requestTimeoutMs });
  const close = (): void => {
    runtime.close();
    images.close();
  };
  return { runtime, images, calls, close };
}

/** Connects to the runtime that the agent's settings name. */
export function connectConfigured(
  deps: Parameters<typeof connectRuntime>[0],
  store: OptionStore<typeof agentOptions>,
): RuntimeConnection {
  const { containerRuntimeEndpoint: endpoint, imageServiceEndpoint: imageEndpoint } = store.current;
  const requestTimeoutMs = select(store.live("runtimeRequestTimeout"), (o) => o.runtimeRequestTimeout);
  return connectRuntime(deps, { endpoint, imageEndpoint, requestTimeoutMs });
}

/**
 * Milliseconds that a start waits for each answer of a runtime that listens: with another cgroup driver than its own no pod
 * could start, and the agent would have to start again. One that does not listen yet is connected to later.
 */
const IDENTIFY_MS = 30_000;

/** Version and cgroup driver of the runtime; undefined if it does not answer in time. */
export async function identifyRuntime(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  endpoint: string,
  { signal }: Abortable,
): Promise<{ readonly version?: RuntimeVersion | undefined; readonly driver?: "cgroupfs" | "systemd" | undefined }> {
  const { runtime, close } = connectRuntime({ clock, log }, { endpoint, requestTimeoutMs: fixed(IDENTIFY_MS) });
  const query = async <T>(call: (limited: Abortable) => Promise<T>): Promise<T | undefined> => {
    try {
      return await withScope([signal], { clock, ms: IDENTIFY_MS }, (limited) => call({ signal: limited }));
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn("Runtime does not answer yet", { endpoint, error: messageOf(error) });
      return undefined;
    }
  };
  try {
    const version = await query((limited) => runtime.version(limited));
    return { version, driver: version && (await query((limited) => runtime.cgroupDriver(limited))) };
  } finally {
    close();
  }
}
