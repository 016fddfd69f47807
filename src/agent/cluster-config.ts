import type { DynamicConfiguration } from "../config/index.ts";
import { ConfigFollower, ConfigReporter, type NodeReporter } from "../node/index.ts";
import type { ClusterDeps, Loop } from "./cluster-parts.ts";

/** The dynamic configuration as the cluster assigns it and hears of it. */
export function composeClusterConfig(
  { clock, log, connection, nodeName, dynamic }: ClusterDeps & { readonly dynamic: DynamicConfiguration },
  node: {
    readonly reporter: NodeReporter;
    event(type: "Normal" | "Warning", reason: string, message: string): void;
  },
): readonly Loop[] {
  const shared = { api: connection.clients.calls, clock, log, random: Math.random, dynamic, node: node.reporter };
  const follower = new ConfigFollower(shared, nodeName);
  const reporter = new ConfigReporter(
    { ...shared, event: (type, reason, message) => node.event(type, reason, message) },
    nodeName,
  );
  return [
    { name: "assigned configuration", run: (signal) => follower.run(signal) },
    { name: "state of the configuration", run: (signal) => reporter.run(signal) },
  ];
}
