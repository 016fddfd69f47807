import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { Listeners } from "../lib/listeners.ts";

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
  private readonly ended = new Listeners();

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
    if (evictOldest(this.sessions, MOST_SESSIONS)) this.ended.call();
    return secrets;
  }

  /** True if both secrets belong to one session that has not expired; prolongs it. */
  use(secrets: SessionSecrets): boolean {
    const session = this.find(secrets);
    if (session !== undefined) session.until = this.now() + IDLE_MS;
    return session !== undefined;
  }

  /** True if both secrets belong to one session that has not expired. */
  isOpen(secrets: SessionSecrets): boolean {
    return this.find(secrets) !== undefined;
  }

  /** Ends a session. May be repeated. */
  close(cookie: string): void {
    if (this.sessions.delete(nameOf(cookie))) this.ended.call();
  }

  /** Calls back when a session was ended by its user or to make room, until the signal aborts. */
  onEnd(fn: () => void, options: Abortable): void {
    this.ended.add(fn, options);
  }

  private find({ cookie, key }: SessionSecrets): { until: number } | undefined {
    const name = nameOf(cookie);
    const session = this.sessions.get(name);
    if (session === undefined || !timingSafeEqual(session.key, hash(key))) return undefined;
    if (session.until > this.now()) return session;
    this.sessions.delete(name);
    return undefined;
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

function evictOldest<V>(map: Map<string, V>, most: number): boolean {
  const [oldest] = map.keys();
  return map.size > most && oldest !== undefined && map.delete(oldest);
}
