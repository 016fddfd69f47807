import type { Abortable } from "../../lib/abort.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { ExecuteDeps } from "./context.ts";

/** Returns the runtime's handler for the pod's RuntimeClass; empty for the default one. */
export async function runtimeHandlerOf(
  { cluster }: Pick<ExecuteDeps, "cluster">,
  pod: Pod,
  options: Abortable,
): Promise<string> {
  if (cluster !== undefined) return cluster.handlerOf(pod, options);
  if (pod.spec.runtimeClassName) throw new Error("runtime classes come only from an API server");
  return "";
}
