import type { ClientConfig, Identity } from "../../src/adapters/kubeapi/client-config.ts";
import { createKubeClients, type KubeClients } from "../../src/adapters/kubeapi/clients.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { fixed } from "../../src/lib/live.ts";
import { type Logger, silent } from "../../src/lib/log.ts";

/** A configuration for servers of one authority. */
export function clientConfig(servers: readonly string[], authorityPem: string, identity: Identity = {}): ClientConfig {
  const authority = { kind: "data", pem: authorityPem } as const;
  return { servers, authority, isInsecure: false, namespace: "default", identity };
}

/** Clients without a rate limit, unless one is given. */
export function testClients(
  clock: Clock,
  config: ClientConfig,
  { qps = 0, burst = 1, log = silent }: { qps?: number; burst?: number; log?: Logger } = {},
): KubeClients {
  const limits = fixed({ calls: { qps, burst }, events: { qps, burst } });
  return createKubeClients({ clock, log }, { config, userAgent: "kubelet-test", limits, heartbeatTimeoutMs: 10_000 });
}
