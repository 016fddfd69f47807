import { uptime } from "node:os";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Node } from "../model/generated/types.ts";

/** When things happened, in milliseconds of the wall clock; absent: not yet. */
interface Times {
  readonly booted: number;
  readonly started: number;
  registering?: number;
  registered?: number;
  ready?: number;
}

/** Who tells of the node as the server has it. */
interface NodeTeller {
  onNode(fn: (node: Node) => void, options: Abortable): void;
}

/** Declares how long each part of the way from the machine's start to a node that is Ready took; 0 until it is over. */
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

/** What is told of a start. */
export interface Startup {
  /** The node is asked for now. */
  registering(): void;
  follow(nodes: NodeTeller, options: Abortable): void;
}

/** When the machine and this program began. */
export function beginnings(clock: Clock): { booted: number; started: number } {
  return { booted: clock.now().wall - uptime() * 1000, started: performance.timeOrigin };
}
