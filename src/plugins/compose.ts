import { RegistrationClient } from "../adapters/plugins/registration-client.ts";
import { SocketTree } from "../adapters/plugins/socket-tree.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { PluginRegistry } from "./plugin-registry.ts";

export interface ComposePluginsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** The registry of plugins whose sockets are below `ROOT/plugins_registry`; features add their handlers to it. */
export function composePlugins(
  { clock, log, metrics }: ComposePluginsDeps,
  { rootDir }: { readonly rootDir: string },
): { readonly plugins: PluginRegistry; readonly loop: Loop } {
  const plugins = new PluginRegistry({ clock, log, connect: (socket) => new RegistrationClient(socket) });
  const sockets = new SocketTree(
    { clock, log, found: (found) => plugins.update(found) },
    `${rootDir}/plugins_registry`,
  );
  metrics.gaugeFrom("plugin_manager_total_plugins", "Number of plugins in Plugin Manager.", {
    labels: ["socket_path", "state"],
    values: () => [
      ...plugins.sockets.registered.map((socket) => [[socket, "actual_state_of_world"], 1] as const),
      ...plugins.sockets.found.map((socket) => [[socket, "desired_state_of_world"], 1] as const),
    ],
  });
  const run = async (signal: AbortSignal): Promise<void> => {
    await sockets.run({ signal });
    await plugins.close();
  };
  return { plugins, loop: { name: "plugins", run } };
}
