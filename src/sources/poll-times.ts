import type { AgentOptions } from "../config/index.ts";
import type { Node } from "../model/generated/types.ts";
import type { PollTimes } from "./api-polled-object.ts";

/** Set by the node controller, in seconds: how long a node of a cluster of this size may cache objects. */
const TTL_ANNOTATION = "node.alpha.kubernetes.io/ttl";
const DEFAULT_TTL_SECONDS = 60;

/**
 * Returns how old ConfigMaps and Secrets may be and how often they are fetched, by the strategy; undefined if they are
 * watched. Those of a running pod are fetched as often as Kubernetes syncs it.
 */
export function pollTimes(
  store: { readonly current: Pick<AgentOptions, "configMapAndSecretChangeDetectionStrategy" | "syncFrequency"> },
  node: () => Node | undefined,
): (() => PollTimes) | undefined {
  switch (store.current.configMapAndSecretChangeDetectionStrategy) {
    case "Watch":
      return undefined;
    case "Get":
      return () => ({ freshMs: 0, everyMs: store.current.syncFrequency });
    case "Cache":
      return () => {
        const freshMs = ttlSeconds(node()) * 1000;
        return { freshMs, everyMs: Math.max(freshMs, store.current.syncFrequency) };
      };
  }
}

function ttlSeconds(node: Node | undefined): number {
  const said = node?.metadata.annotations?.[TTL_ANNOTATION] ?? "";
  return /^\d+$/.test(said) ? Number(said) : DEFAULT_TTL_SECONDS;
}
