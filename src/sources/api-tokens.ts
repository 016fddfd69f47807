import type { KubeApi } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Pod } from "../model/generated/types.ts";

/** A token is asked for anew at this share of its life, and after a day at the latest (5.7). */
const USED_SHARE = 0.8;
const DAY_MS = 24 * 60 * 60_000;
const JITTER_MS = 10_000;
/** After a refusal the old token is used; it is tried again after this long. */
const RETRY_MS = 10_000;

interface Kept {
  readonly token: string;
  readonly refreshAt: number;
  readonly endsAt: number;
}

/** What a volume asks for. */
export interface TokenWish {
  readonly pod: Pod;
  readonly audience: string;
  readonly expirationSeconds: number;
}

/** Tokens of service accounts, each bound to its pod, kept in memory while they are good. */
export class ApiTokens {
  private readonly kept = new Map<string, Kept>();
  private readonly asked = new Map<string, Promise<Kept>>();

  constructor(
    private readonly deps: {
      readonly api: Pick<KubeApi, "createToken">;
      readonly clock: Clock;
      readonly random: () => number;
      /** Told after each new token. */
      changed?(): void;
    },
  ) {}

  /** Tokens that an earlier agent kept: used only where no new one can be had. */
  restore(tokens: Readonly<Record<string, { readonly token: string; readonly endsAt: number }>>): void {
    for (const [key, { token, endsAt }] of Object.entries(tokens)) this.kept.set(key, { token, endsAt, refreshAt: 0 });
  }

  /** The tokens of these pods. */
  known(pods: readonly Pod[]): Record<string, { token: string; endsAt: number }> {
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    const own = [...this.kept].filter(([key]) => uids.has(key.slice(0, key.indexOf("/"))));
    return Object.fromEntries(own.map(([key, { token, endsAt }]) => [key, { token, endsAt }]));
  }

  /** A good token and when to come back for the next. On failure the old one is given out until it ends. */
  async token(wish: TokenWish, options: Abortable): Promise<{ token: string; refreshAt: number }> {
    const key = keyOf(wish);
    const known = this.kept.get(key);
    const now = this.deps.clock.now().wall;
    if (known !== undefined && now < known.refreshAt) return known;
    try {
      // Two volumes of one pod ask for the same token at the same moment.
      const asking = this.asked.get(key) ?? this.ask(wish, options).finally(() => this.asked.delete(key));
      this.asked.set(key, asking);
      const fresh = await asking;
      this.kept.set(key, fresh);
      this.deps.changed?.();
      return fresh;
    } catch (error) {
      options.signal.throwIfAborted();
      if (known === undefined || now >= known.endsAt) throw error;
      return { token: known.token, refreshAt: now + RETRY_MS };
    }
  }

  /** Drops the tokens of pods that are gone. */
  wanted(pods: readonly Pod[]): void {
    if (this.kept.size === 0) return;
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const key of this.kept.keys()) if (!uids.has(key.slice(0, key.indexOf("/")))) this.kept.delete(key);
  }

  private async ask({ pod, audience, expirationSeconds }: TokenWish, options: Abortable): Promise<Kept> {
    const { namespace = "", name = "", uid = "" } = pod.metadata;
    const account = pod.spec.serviceAccountName || "default";
    const began = this.deps.clock.now().wall;
    const answer = await this.deps.api.createToken(
      { namespace, name: account },
      {
        metadata: {},
        spec: {
          ...(audience !== "" && { audiences: [audience] }),
          expirationSeconds,
          boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
        },
      },
      options,
    );
    const { token = "", expirationTimestamp } = answer.status ?? {};
    const said = Date.parse(expirationTimestamp ?? "");
    const endsAt = Number.isNaN(said) ? began + expirationSeconds * 1000 : said;
    const lifeMs = Math.max(0, endsAt - began);
    const refreshAt =
      began + Math.min(DAY_MS, lifeMs * USED_SHARE) - this.deps.random() * Math.min(JITTER_MS, lifeMs / 20);
    return { token, refreshAt, endsAt };
  }
}

function keyOf({ pod, audience, expirationSeconds }: TokenWish): string {
  const { uid, namespace } = pod.metadata;
  return [uid, namespace, pod.spec.serviceAccountName, audience, expirationSeconds].join("/");
}
