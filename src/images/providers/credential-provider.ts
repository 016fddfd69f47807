import { createHash } from "node:crypto";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import type { RegistryEntry } from "../../model/docker-config.ts";
import type { Pod, ServiceAccount } from "../../model/generated/types.ts";
import type { CredentialOwner, PullCredential } from "../../model/pull-credential.ts";
import { matchesRepository } from "../../model/registry-match.ts";
import type { ProviderRequest, ProviderResponse } from "./exec-protocol.ts";
import type { ProviderConfig, TokenAttributes } from "./provider-config.ts";

/** Expired credentials are dropped at this interval, in milliseconds, as in Kubernetes. */
const PURGE_MS = 15 * 60_000;
/** Characters in all cached responses of one provider; the oldest ones make room. */
const MOST_CACHED = 4 * 1024 * 1024;
/** Lifetime of the token that a plugin gets, in seconds: the default of the API. */
const TOKEN_SECONDS = 3600;

/** Service accounts and their tokens, from the API server. */
export interface AccountSource {
  account(pod: Pod, options: Abortable): Promise<ServiceAccount | undefined>;
  token(
    need: { pod: Pod; audience: string; expirationSeconds: number; accountUid: string },
    options: Abortable,
  ): Promise<{ token: string }>;
}

export interface CredentialProviderDeps {
  readonly clock: Clock;
  /** Runs the plugin. Its errors contain no secrets. */
  run(config: ProviderConfig, request: ProviderRequest): Promise<ProviderResponse>;
  /** Undefined without an API server. */
  readonly accounts?: AccountSource | undefined;
}

/** A registry entry, and the service account that it is for. */
export type OwnedEntry = RegistryEntry & Pick<PullCredential, "owner">;

/** The part of a request that depends on the pod. */
interface PodPart {
  readonly token: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly owner: CredentialOwner;
  readonly cacheKey: readonly unknown[];
}

interface CachedResponse {
  readonly entries: readonly RegistryEntry[];
  readonly size: number;
  readonly expiresAt: number;
}

/** One credential provider plugin: runs it at most once at a time for the same request, and caches its responses. */
export class CredentialProvider {
  private readonly cached = new Map<string, CachedResponse>();
  private readonly running = new Map<string, Promise<ProviderResponse>>();
  private purgedAt: number;

  constructor(
    private readonly deps: CredentialProviderDeps,
    readonly config: ProviderConfig,
  ) {
    this.purgedAt = deps.clock.now().mono;
  }

  /** Returns the credentials for a repository; empty if the plugin does not handle it. Rejects if the plugin fails. */
  async entries(repository: string, pod: Pod, options: Abortable): Promise<readonly OwnedEntry[]> {
    const { matchImages, token: attributes } = this.config;
    if (!matchImages.some((pattern) => matchesRepository(pattern, repository))) return [];
    const part = attributes === undefined ? undefined : await this.podPart(attributes, pod, options);
    if (part === "left out") return [];
    const owned = (entries: readonly RegistryEntry[]): readonly OwnedEntry[] =>
      part === undefined ? entries : entries.map((entry) => ({ ...entry, owner: part.owner }));
    const keys = { Image: repository, Registry: repository.split("/", 1)[0] ?? "", Global: "<global>" };
    const keyOf = (base: string): string => JSON.stringify([base, part?.cacheKey ?? []]);
    const known = [keys.Image, keys.Registry, keys.Global].map(keyOf).find((key) => this.lookUp(key) !== undefined);
    if (known !== undefined) return owned(this.lookUp(known) ?? []);
    const response = await orAborted(this.runOnce(repository, part), options.signal);
    if (part !== undefined && attributes?.cacheType !== "Token") rejectEchoedToken(response, part.token);
    this.store(keyOf(keys[response.cacheKeyType]), response);
    return owned(response.entries);
  }

  private runOnce(image: string, part: PodPart | undefined): Promise<ProviderResponse> {
    const key = JSON.stringify([image, part?.token, part?.annotations]);
    const running = this.running.get(key);
    if (running !== undefined) return running;
    const { apiVersion } = this.config;
    const account = part && { serviceAccountToken: part.token, serviceAccountAnnotations: part.annotations };
    const started = this.deps
      .run(this.config, { apiVersion, image, ...account })
      .finally(() => this.running.delete(key));
    this.running.set(key, started);
    return started;
  }

  /** Undefined for a pod without a service account, "left out" if the plugin is not for this pod. */
  private async podPart(
    attributes: TokenAttributes,
    pod: Pod,
    options: Abortable,
  ): Promise<PodPart | "left out" | undefined> {
    const name = pod.spec.serviceAccountName ?? "";
    if (name === "") return attributes.isRequired ? "left out" : undefined;
    const { accounts } = this.deps;
    if (accounts === undefined) throw new Error("service account token: an API server is required");
    const account = await accounts.account(pod, options);
    if (account === undefined) throw new Error(`service account "${name}" not found`);
    const { uid = "", namespace = "" } = account.metadata;
    const given = account.metadata.annotations ?? {};
    const has = (key: string): boolean => Object.hasOwn(given, key);
    if (!attributes.requiredAnnotations.every(has)) return "left out";
    const wanted = [...attributes.requiredAnnotations, ...attributes.optionalAnnotations].filter(has).sort();
    const annotations = Object.fromEntries(wanted.map((key) => [key, given[key] ?? ""]));
    const need = { pod, audience: attributes.audience, expirationSeconds: TOKEN_SECONDS, accountUid: uid };
    const { token } = await accounts.token(need, options);
    const tokenHash = createHash("sha256").update(token).digest("hex");
    const cacheKey = [namespace, name, uid, annotations, ...(attributes.cacheType === "Token" ? [tokenHash] : [])];
    return { token, annotations, owner: { kind: "ServiceAccount", uid, namespace, name }, cacheKey };
  }

  private lookUp(key: string): readonly RegistryEntry[] | undefined {
    const now = this.deps.clock.now().mono;
    if (now - this.purgedAt > PURGE_MS) {
      this.purgedAt = now;
      for (const [old, { expiresAt }] of this.cached) if (now > expiresAt) this.cached.delete(old);
    }
    const found = this.cached.get(key);
    return found !== undefined && now <= found.expiresAt ? found.entries : undefined;
  }

  private store(key: string, { cacheMs = this.config.defaultCacheMs, entries }: ProviderResponse): void {
    const size = key.length + JSON.stringify(entries).length;
    if (cacheMs <= 0 || size > MOST_CACHED) return;
    this.cached.delete(key);
    let room = MOST_CACHED - size;
    for (const one of this.cached.values()) room -= one.size;
    for (const [old, one] of this.cached) {
      if (room >= 0) break;
      this.cached.delete(old);
      room += one.size;
    }
    this.cached.set(key, { entries, size, expiresAt: this.deps.clock.now().mono + cacheMs });
  }
}

/** As in Kubernetes: a plugin that passes the token on must cache it for that token only. */
function rejectEchoedToken({ entries }: ProviderResponse, token: string): void {
  if (entries.every(({ auth }) => auth.password !== token)) return;
  throw new Error('plugin returned the service account token as password, which needs cacheType "Token"');
}
