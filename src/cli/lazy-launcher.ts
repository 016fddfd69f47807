import type { AgentLauncher } from "./launcher.ts";

/** A launcher that is loaded when it is first used: commands that start no agent do not load its parts. */
export function lazyLauncher(load: () => Promise<AgentLauncher>): AgentLauncher {
  let loaded: Promise<AgentLauncher> | undefined;
  const get = (): Promise<AgentLauncher> => (loaded ??= load());
  return {
    run: async (options, start) => (await get()).run(options, start),
    lockConfigStore: async (directory) => (await get()).lockConfigStore(directory),
    up: async (options, watcher, abortable) => (await get()).up(options, watcher, abortable),
    down: async (options, watcher, abortable) => (await get()).down(options, watcher, abortable),
  };
}
