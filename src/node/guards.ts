import type { agentOptions, OptionStore } from "../config/index.ts";
import type { Loop } from "../lib/loop.ts";
import { type RunProgram, UtilChains } from "./iptables/chains.ts";
import { composeOom, type OomDeps } from "./oom/compose.ts";
import { composeShutdown, type ShutdownDeps } from "./shutdown/compose.ts";

/** How long a program may take, in milliseconds: it waits 5 s for a lock. */
const PROGRAM_MS = 10_000;

export interface GuardDeps extends OomDeps, ShutdownDeps {
  readonly store: OptionStore<typeof agentOptions>;
  readonly host: {
    exec(file: string, args: readonly string[], options: { readonly timeoutMs: number }): ReturnType<RunProgram>;
  };
  /** True if there is an API server: only then are there other components that look for chains. */
  readonly isInCluster: boolean;
}

/** What watches over the node: kills for lack of memory, its shutdown, and the chains of iptables. */
export function composeGuards(deps: GuardDeps): readonly Loop[] {
  const loops = [composeOom(deps).loop, composeShutdown(deps)];
  const { store, host, clock, log } = deps;
  if (!deps.isInCluster || !store.current.makeIPTablesUtilChains) return loops;
  const run: RunProgram = (file, args) =>
    host.exec(file, args, { timeoutMs: PROGRAM_MS }).catch(() => ({ code: undefined, stderr: "" }));
  const chains = new UtilChains({ run, clock, log });
  return [...loops, { name: "iptables chains", run: (signal) => chains.run(signal) }];
}
