import type { Clock } from "../../lib/clock.ts";
import { type Live, select } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { TokenBucket, type TokenBucketOptions } from "../../lib/token-bucket.ts";
import { ApiClient } from "./api-client.ts";
import type { ClientConfig } from "./client-config.ts";
import { Credentials } from "./credentials.ts";
import type { KubeApi } from "./port.ts";
import { type RequestAnswer, Transport } from "./transport.ts";

export interface KubeClientsOptions {
  readonly config: ClientConfig;
  readonly userAgent: string;
  /** `kubeAPIQPS`/`kubeAPIBurst` and `eventRecordQPS`/`eventBurst`; may change while the agent runs. */
  readonly limits: Live<{ readonly calls: TokenBucketOptions; readonly events: TokenBucketOptions }>;
  /** Milliseconds: the smaller one of status frequency and lease duration, as in Kubernetes. */
  readonly heartbeatTimeoutMs: number;
}

/** Timeout of a call that sets none, in milliseconds. */
const CALL_TIMEOUT_MS = 30_000;

/** The clients of one identity, each with its own rate limit, over the same connections. */
export interface KubeClients {
  /** Everything that the other clients are not for. */
  readonly calls: KubeApi;
  /** Events only, so that they never use up the budget of status updates. */
  readonly events: KubeApi;
  /** Lease and node status: not rate limited, short timeout. */
  readonly heartbeat: KubeApi;
  /** Token and access reviews, so that requests to this node never use up the budget of pods, nor wait for it. */
  readonly reviews: KubeApi;
  /** Reads certificate and token files before the next request; called after they were written. */
  refreshCredentials(): void;
  /** Calls `fn`, and only it, for each answer from now on. */
  onAnswer(fn: (answer: RequestAnswer) => void): void;
  /** New requests get new connections; running watches go on. */
  renew(): void;
  close(): void;
}

export function createKubeClients(
  deps: { readonly clock: Clock; readonly log: Logger },
  options: KubeClientsOptions,
): KubeClients {
  const { clock } = deps;
  const { config, userAgent, limits } = options;
  const transport = new Transport({ ...deps, credentials: new Credentials(deps, config) }, config);
  const timeoutMs = CALL_TIMEOUT_MS;
  const limited = (pick: "calls" | "events"): KubeApi => {
    const bucket = new TokenBucket(
      clock,
      select(limits, (all) => all[pick]),
    );
    return new ApiClient({ transport, clock, bucket }, { userAgent, timeoutMs });
  };
  return {
    calls: limited("calls"),
    events: limited("events"),
    reviews: limited("calls"),
    heartbeat: new ApiClient({ transport, clock }, { userAgent, timeoutMs: options.heartbeatTimeoutMs }),
    refreshCredentials: () => transport.refreshCredentials(),
    onAnswer: (fn) => {
      transport.onAnswer = fn;
    },
    renew: () => transport.renew(),
    close: () => transport.close(),
  };
}
