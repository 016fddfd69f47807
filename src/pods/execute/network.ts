import type { RuntimePort } from "../../adapters/runtime/port.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { PodRun } from "./context.ts";

/** The runtime has no network for pods yet: not the pod's fault, and often over soon. */
export class NetworkNotReadyError extends Error {
  override readonly name = "NetworkNotReadyError";
}

/** Rejects with a NetworkNotReadyError, and records the event, if the runtime's network is not ready for this pod. */
export async function requireNetwork(
  runtime: Pick<RuntimePort, "status">,
  run: Pick<PodRun, "pod" | "journal">,
  options: Abortable,
): Promise<void> {
  if (run.pod.spec.hostNetwork === true) return;
  const { networkReady, message } = await runtime.status(options);
  if (networkReady) return;
  // Reason and words of Kubernetes.
  const text = `network is not ready: container runtime network not ready: ${message}`;
  run.journal.event("Warning", "NetworkNotReady", text);
  throw new NetworkNotReadyError(text);
}
