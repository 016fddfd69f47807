import { uptime } from "node:os";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Node } from "../model/generated/types.ts";

/** Times of the steps of a start, in milliseconds of the wall clock; missing until they are reached. */
interface Times {
  readonly booted: number;
  readonly started: number;
  registering?: number;
  registered?: number;
  ready?: number;
}

/** Delivers the versions of the Node object. */
interface NodeTeller {
  onNode(fn: (node: Node) => void, options: Abortable): void;
}

/** Declares the durations of the steps from the boot to a ready node; 0 until a step is over. */
export function startupMetrics(metrics: Metrics, clock: Clock, machine: { booted: number; started: number }): Startup {
  const times: Times = { ...machine };
  const gauge = (name: string, help: string, [from, to]: readonly [keyof Times, keyof Times]): void =>
    metrics.gaugeFrom(`kubelet_node_startup_${name}duration_seconds`, help, {
      values: () => [[[], Math.max(0, (times[to] ?? 0) - (times[from] ?? 0)) / 1000 || 0]],
    });
  gauge("", "From the machine's start to a node that is Ready.", ["booted", "ready"]);
  gauge("pre_kubelet_", "From the machine's start to that of the agent.", ["booted", "started"]);
  gauge("pre_registration_", "From the agent's start to asking for a node.", ["started", "registering"]);
  gauge("registration_", "From asking for a node to having it.", ["registering", "registered"]);
  gauge("post_registration_", "From having a node to it being Ready.", ["registered", "ready"]);
  return {
    registering: () => {
      times.registering ??= clock.now().wall;
    },
    follow: (nodes, options) => {
      const look = ({ status }: Node): void => {
        const now = clock.now().wall;
        times.registered ??= now;
        const isReady = status?.conditions?.some((one) => one.type === "Ready" && one.status === "True") ?? false;
        if (isReady) times.ready ??= now;
      };
      nodes.onNode(look, options);
    },
  };
}

/** Callbacks of the steps of a start. */
export interface Startup {
  /** The registration begins. */
  registering(): void;
  follow(nodes: NodeTeller, options: Abortable): void;
}

/** Start times of the machine and of this process. */
export function beginnings(clock: Clock): { booted: number; started: number } {
  return { booted: clock.now().wall - uptime() * 1000, started: performance.timeOrigin };
}
