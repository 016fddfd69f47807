import type { KubeClients } from "../../adapters/kubeapi/index.ts";
import type { ApiServer } from "../compose.ts";

/** The clients of the agent for the local API: the same calls as to a cluster, inside the process. */
export function localClients(server: ApiServer, nodeName: string): KubeClients {
  const api = server.api("kubelet", {
    name: `system:node:${nodeName}`,
    groups: ["system:nodes", "system:masters", "system:authenticated"],
  });
  return {
    calls: api,
    events: api,
    heartbeat: api,
    reviews: api,
    // There are no connections, and no credentials.
    refreshCredentials: () => undefined,
    onAnswer: () => undefined,
    renew: () => undefined,
    close: () => undefined,
  };
}
