import type { Clock } from "../lib/clock.ts";
import type { Live } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { eventMetrics, runtimeCallMetrics } from "./cri/call-metrics.ts";
import { CriImages } from "./cri/cri-images.ts";
import { CriRuntime } from "./cri/cri-runtime.ts";
import type { ImagePort, RuntimePort } from "./runtime/port.ts";

/** A container runtime behind its ports. */
export interface RuntimeConnection {
  readonly runtime: RuntimePort;
  readonly images: ImagePort;
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
  deps: { readonly clock: Clock; readonly log: Logger; readonly metrics?: Metrics },
  { endpoint, imageEndpoint, requestTimeoutMs }: RuntimeEndpoint,
): RuntimeConnection {
  const { clock, log, metrics } = deps;
  const measured = metrics && { onCall: runtimeCallMetrics(metrics), onEvents: eventMetrics(metrics) };
  const runtime = new CriRuntime({ clock, log, ...measured }, { endpoint, requestTimeoutMs });
  const images = new CriImages({ clock, log, ...measured }, { endpoint: imageEndpoint || endpoint, requestTimeoutMs });
  const close = (): void => {
    runtime.close();
    images.close();
  };
  return { runtime, images, close };
}
