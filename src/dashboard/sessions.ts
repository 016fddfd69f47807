import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../lib/clock.ts";

/** Lifetime of a login link in milliseconds. */
const LOGIN_MS = 5 * 60_000;
/** A session ends after so many milliseconds without a request. */
const IDLE_MS = 12 * 3_600_000;
const MOST_LOGINS = 16;
const MOST_SESSIONS = 64;
const SECRET_BYTES = 32;

/** The two secrets of a session: one that scripts cannot read, one that other ports of the same host do not get. */
export interface SessionSecrets {
  /** For the HttpOnly cookie. */
  readonly cookie: string;
  /** For the Authorization header; browsers keep it for the page's own origin. */
  readonly key: string;
}

/**
 * Login links and sessions of the page, in memory only: both end with the agent. Only hashes are kept, so that neither
 * the time of a lookup nor a dump of memory reveals a secret.
 */
export class Sessions {
  /** Monotonic time of expiration by hash of the token. */
  private readonly logins = new Map<string, number>();
  private readonly sessions = new Map<string, { readonly key: Buffer; until: number }>();

  constructor(private readonly clock: Clock) {}

  /** A token that opens one session, once, within five minutes. */
  issueLogin(): string {
    const token = secret();
    this.logins.set(nameOf(token), this.now() + LOGIN_MS);
    evictOldest(this.logins, MOST_LOGINS);
    return token;
  }

  /** Opens a session for a login token; undefined if the token is invalid, expired or used. */
  redeem(token: string): SessionSecrets | undefined {
    const name = nameOf(token);
    const until = this.logins.get(name);
    this.logins.delete(name);
    if (until === undefined || until <= this.now()) return undefined;
    const secrets = { cookie: secret(), key: secret() };
    this.sessions.set(nameOf(secrets.cookie), { key: hash(secrets.key), until: this.now() + IDLE_MS });
    evictOldest(this.sessions, MOST_SESSIONS);
    return secrets;
  }

  /** True if both secrets belong to one session that has not expired; prolongs it. */
  isOpen({ cookie, key }: SessionSecrets): boolean {
    const name = nameOf(cookie);
    const session = this.sessions.get(name);
    if (session === undefined || !timingSafeEqual(session.key, hash(key))) return false;
    if (session.until <= this.now()) {
      this.sessions.delete(name);
      return false;
    }
    session.until = this.now() + IDLE_MS;
    return true;
  }

  /** Ends a session. May be repeated. */
  close(cookie: string): void {
    this.sessions.delete(nameOf(cookie));
  }

  private now(): number {
    return this.clock.now().mono;
  }
}

function secret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

function hash(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function nameOf(text: string): string {
  return hash(text).toString("base64");
}

function evictOldest<V>(map: Map<string, V>, most: number): void {
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}
