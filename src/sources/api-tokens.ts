import type { KubeApi } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Pod } from "../model/generated/types.ts";

/** A token is requested anew at this share of its lifetime, and after a day at the latest, as in Kubernetes. */
const USED_SHARE = 0.8;
const DAY_MS = 24 * 60 * 60_000;
const JITTER_MS = 10_000;
/** After a failed request the old token is used; the next request comes after this time, in milliseconds. */
const RETRY_MS = 10_000;

/** A token with its times, as wall-clock milliseconds. */
interface CachedToken {
  readonly token: string;
  readonly refreshAt: number;
  readonly expiresAt: number;
}

/** Which token a volume or a credential provider needs. */
export interface TokenNeed {
  readonly pod: Pod;
  readonly audience: string;
  readonly expirationSeconds: number;
  /** Rejects the request if the service account of this name is another one by now. */
  readonly accountUid?: string;
}

/** Service account tokens, each bound to its pod, cached in memory only. */
export class ApiTokens {
  private readonly cached = new Map<string, CachedToken>();
  private readonly requested = new Map<string, Promise<CachedToken>>();

  constructor(
    private readonly deps: {
      readonly api: Pick<KubeApi, "createToken">;
      readonly clock: Clock;
      readonly random: () => number;
    },
  ) {}

  /** Returns a valid token and when to refresh it. If the request fails, the old one is returned until it expires. */
  async token(need: TokenNeed, options: Abortable): Promise<CachedToken> {
    const key = keyOf(need);
    const known = this.cached.get(key);
    const now = this.deps.clock.now().wall;
    if (known !== undefined && now < known.refreshAt) return known;
    try {
      // Two volumes of one pod need the same token at the same moment.
      const request = this.requested.get(key) ?? this.request(need, options).finally(() => this.requested.delete(key));
      this.requested.set(key, request);
      const fresh = await request;
      this.cached.set(key, fresh);
      return fresh;
    } catch (error) {
      options.signal.throwIfAborted();
      if (known === undefined || now >= known.expiresAt) throw error;
      return { ...known, refreshAt: now + RETRY_MS };
    }
  }

  /** Evicts the tokens of deleted pods. */
  wanted(pods: readonly Pod[]): void {
    if (this.cached.size === 0) return;
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const key of this.cached.keys()) if (!uids.has(key.slice(0, key.indexOf("/")))) this.cached.delete(key);
  }

  private async request(need: TokenNeed, options: Abortable): Promise<CachedToken> {
    const { pod, audience, expirationSeconds, accountUid } = need;
    const { namespace = "", name = "", uid = "" } = pod.metadata;
    const account = pod.spec.serviceAccountName || "default";
    const began = this.deps.clock.now().wall;
    const answer = await this.deps.api.createToken(
      { namespace, name: account },
      {
        metadata: accountUid === undefined ? {} : { uid: accountUid },
        spec: {
          ...(audience !== "" && { audiences: [audience] }),
          expirationSeconds,
          boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
        },
      },
      options,
    );
    const { token = "", expirationTimestamp } = answer.status ?? {};
    const stated = Date.parse(expirationTimestamp ?? "");
    const expiresAt = Number.isNaN(stated) ? began + expirationSeconds * 1000 : stated;
    const lifeMs = Math.max(0, expiresAt - began);
    const refreshAt =
      began + Math.min(DAY_MS, lifeMs * USED_SHARE) - this.deps.random() * Math.min(JITTER_MS, lifeMs / 20);
    return { token, refreshAt, expiresAt };
  }
}

function keyOf({ pod, audience, expirationSeconds, accountUid = "" }: TokenNeed): string {
  const { uid, namespace } = pod.metadata;
  return [uid, namespace, pod.spec.serviceAccountName, audience, expirationSeconds, accountUid].join("/");
}
