import { createHmac, randomBytes } from "node:crypto";
import { bearerToken } from "../adapters/net/bearer-token.ts";
import type { RouteRequest } from "../adapters/net/http-route.ts";
import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Live } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import { TtlCache } from "./ttl-cache.ts";

/** The authenticated user of a request. */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** Reviews a token: undefined if it is invalid. Rejects if the review failed. */
export interface TokenReviewer {
  review(token: string, options: Abortable): Promise<User | undefined>;
}

export interface AuthenticatorOptions {
  readonly anonymous: boolean;
  readonly tokenTtlMs: number;
}

const ANONYMOUS: User = { name: "system:anonymous", groups: ["system:unauthenticated"] };
const AUTHENTICATED = "system:authenticated";
/** Timeout of a token review in milliseconds. */
const REVIEW_MS = 30_000;
const MOST_TOKENS = 4096;
/** A longer token is invalid; those with many groups have a few thousand bytes. */
const LONGEST_TOKEN = 64 * 1024;

/**
 * Authenticates requests: by client certificate, else by bearer token, else as anonymous if that is enabled.
 * Invalid credentials never fall back to anonymous.
 */
export class Authenticator {
  private readonly tokens: TtlCache<User | "nobody">;
  private readonly asking = new Map<string, Promise<User | undefined>>();
  /** Keys are keyed hashes: a memory dump has no tokens, and collisions cannot be searched for. */
  private readonly secret = randomBytes(32);

  constructor(
    private readonly deps: { clock: Clock; log: Logger; reviewer?: TokenReviewer | undefined },
    private readonly options: Live<AuthenticatorOptions>,
  ) {
    this.tokens = new TtlCache(deps.clock, MOST_TOKENS);
  }

  /** The user, or undefined for 401. Rejects only with the signal's reason. */
  async authenticate({ peer, headers, signal }: RouteRequest): Promise<User | undefined> {
    let isWrong = false;
    if (peer !== undefined) {
      const isTrusted = peer.isTrusted(this.deps.clock.now().wall);
      if (isTrusted && peer.commonName !== "" && peer.uids.length <= 1) {
        const [uid] = peer.uids;
        return known({
          name: peer.commonName,
          groups: peer.organizations,
          ...(uid === undefined ? {} : { uid }),
          extra: { "authentication.kubernetes.io/credential-id": [`X509SHA256=${peer.fingerprint}`] },
        });
      }
      if (!isTrusted) isWrong = true;
    }
    const token = bearerToken(headers);
    if (token !== undefined && this.deps.reviewer !== undefined) {
      const user = token === "" || token.length > LONGEST_TOKEN ? undefined : await this.review(token, signal);
      if (user !== undefined) return known(user);
      isWrong = true;
    }
    if (isWrong || !this.options.current.anonymous) return undefined;
    return ANONYMOUS;
  }

  /** Results are cached, valid or not; failures are not. Concurrent reviews of one token share one call. */
  private async review(token: string, signal: AbortSignal): Promise<User | undefined> {
    const key = createHmac("sha256", this.secret).update(token).digest("base64");
    const kept = this.tokens.get(key);
    if (kept !== undefined) return kept === "nobody" ? undefined : kept;
    let asked = this.asking.get(key);
    if (asked === undefined) {
      asked = this.ask(token, key).finally(() => this.asking.delete(key));
      this.asking.set(key, asked);
    }
    const user = await asked;
    signal.throwIfAborted();
    return user;
  }

  private async ask(token: string, key: string): Promise<User | undefined> {
    const { reviewer, clock, log } = this.deps;
    if (reviewer === undefined) return undefined;
    try {
      const user = await withScope([], { clock, ms: REVIEW_MS }, (signal) => reviewer.review(token, { signal }));
      this.tokens.set(key, user ?? "nobody", this.options.current.tokenTtlMs);
      return user;
    } catch (error) {
      log.warn("Failed to review token", { error: messageOf(error) });
      return undefined;
    }
  }
}

function known(user: User): User {
  return user.groups.includes(AUTHENTICATED) ? user : { ...user, groups: [...user.groups, AUTHENTICATED] };
}
