import type { Loop } from "../lib/loop.ts";
import { composeOom, type OomDeps } from "./oom/compose.ts";
import { composeShutdown, type ShutdownDeps } from "./shutdown/compose.ts";

/** What watches over the node: kills for lack of memory, and its shutdown. */
export function composeGuards(deps: OomDeps & ShutdownDeps): readonly Loop[] {
  return [composeOom(deps).loop, composeShutdown(deps)];
}
