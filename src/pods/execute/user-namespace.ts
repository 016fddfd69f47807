import type { IdMapping } from "../../adapters/runtime/port.ts";
import type { Pod } from "../../model/generated/types.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";

/** Returns the id mapping of a pod with `hostUsers: false`; undefined for others. */
export async function userMapping({ users }: Pick<ExecuteDeps, "users">, pod: Pod): Promise<IdMapping | undefined> {
  return pod.spec.hostUsers === false ? users.of(podIdentity(pod).uid) : undefined;
}

/** Rejects if the pod needs a user namespace and the runtime's handler does not support them. */
export async function requireUserNamespaces(deps: ExecuteDeps, run: PodRun, handler: string): Promise<void> {
  if (run.pod.spec.hostUsers !== false) return;
  const { handlers } = await deps.runtime.status({ signal: run.interrupt });
  if (handlers.some(({ name, userNamespaces }) => name === handler && userNamespaces)) return;
  const who = handler === "" ? "runtime" : `RuntimeClass handler "${handler}"`;
  throw new Error(`can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces`);
}
