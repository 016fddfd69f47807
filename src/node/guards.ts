import { machineInfo } from "../adapters/host/machine.ts";
import { swapSize } from "../adapters/host/node-facts.ts";
import type { agentOptions, OptionStore } from "../config/index.ts";
import type { Loop } from "../lib/loop.ts";
import { type RunProgram, UtilChains } from "./iptables/chains.ts";
import { composeOom, type OomDeps } from "./oom/compose.ts";
import { composeShutdown, type ShutdownDeps } from "./shutdown/compose.ts";

/** The first release of Linux whose memory filesystems can be kept out of swap. */
const NO_SWAP_KERNEL = [6, 4] as const;

/** Records that memory-backed volumes may be written to disk: swap is on, and the kernel cannot keep them out. */
export function recordSwapRisk(
  { swapBytes, kernel }: { readonly swapBytes: number; readonly kernel: string },
  event: GuardDeps["event"],
): void {
  const [major = 0, minor = 0] = kernel.split(".").map((part) => Number.parseInt(part, 10));
  const [needsMajor, needsMinor] = NO_SWAP_KERNEL;
  const canKeepOut = major > needsMajor || (major === needsMajor && minor >= needsMinor);
  if (swapBytes === 0 || canKeepOut) return;
  const message =
    "The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure.";
  event("Warning", "PossibleMemoryBackedVolumesOnDisk", message);
}

/** How long a program may take, in milliseconds: it waits 5 s for a lock. */
const PROGRAM_MS = 10_000;

export interface GuardDeps extends OomDeps, ShutdownDeps {
  readonly store: OptionStore<typeof agentOptions>;
  readonly host: {
    exec(file: string, args: readonly string[], options: { readonly timeoutMs: number }): ReturnType<RunProgram>;
  };
  /** True if there is an API server: only then are there other components that look for chains. */
  readonly hasApiServer: boolean;
}

/** What watches over the node: kills for lack of memory, its shutdown, and the chains of iptables. */
export function composeGuards(deps: GuardDeps): readonly Loop[] {
  const loops = [composeOom(deps), composeShutdown(deps)];
  const { store, host, clock, log } = deps;
  recordSwapRisk({ swapBytes: swapSize(), kernel: machineInfo().kernel }, deps.event);
  if (!deps.hasApiServer || !store.current.makeIPTablesUtilChains) return loops;
  const run: RunProgram = (file, args) =>
    host.exec(file, args, { timeoutMs: PROGRAM_MS }).catch(() => ({ code: undefined, stderr: "" }));
  const chains = new UtilChains({ run, clock, log });
  return [...loops, { name: "iptables chains", run: (signal) => chains.run(signal) }];
}
