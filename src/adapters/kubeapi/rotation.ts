import { X509Certificate } from "node:crypto";
import type { Abortable } from "../../lib/abort.ts";
import { Backoff } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Live } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { Wakes } from "../../lib/wakes.ts";
import type { CertStore, StoredPair } from "./cert-store.ts";
import { newKey } from "./certificates.ts";
import { type CertificateSpec, requestCertificate } from "./csr.ts";
import type { KubeApi } from "./port.ts";

/** Timeout of a signer, in milliseconds; then a new request with a new key is made. */
const SIGNING_LIMIT_MS = 15 * 60_000;
/** Maximum sleep in milliseconds: the wall clock may be set while we sleep by the monotonic one. */
const LONGEST_SLEEP_MS = 60 * 60_000;

/** Returns the time of the next rotation: between 70 % and 90 % of the lifetime, so that a fleet is spread. */
export function rotationTime(
  { notBefore, notAfter }: Pick<StoredPair, "notBefore" | "notAfter">,
  random: number,
): number {
  return notBefore + (notAfter - notBefore) * (0.7 + 0.2 * random);
}

/** Returns why a certificate must be replaced at once, or undefined. Names in addition to the spec are fine. */
export function whyReplace(pair: StoredPair | undefined, spec: CertificateSpec, nowWall: number): string | undefined {
  if (pair === undefined) return "there is none";
  if (nowWall >= pair.notAfter) return "it has expired";
  const { subject, subjectAltName = "" } = new X509Certificate(pair.certificate);
  const has = new Set(subject.split("\n"));
  const { commonName, organizations = [] } = spec.subject;
  for (const part of [`CN=${commonName}`, ...organizations.map((organization) => `O=${organization}`)]) {
    if (!has.has(part)) return `it lacks ${part}`;
  }
  const names = new Set(subjectAltName.split(", "));
  for (const name of spec.dnsNames ?? []) if (!names.has(`DNS:${name}`)) return `it lacks the name ${name}`;
  const certificate = new X509Certificate(pair.certificate);
  for (const address of spec.addresses ?? []) {
    if (certificate.checkIP(address) === undefined) return `it lacks the address ${address}`;
  }
  return undefined;
}

export interface RotationDeps {
  /** Called for each request: the first one may use the bootstrap credentials. */
  readonly api: () => Pick<KubeApi, "create" | "get" | "list" | "watch">;
  readonly store: CertStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
}

export interface RotationOptions {
  /** Undefined while nothing can be requested: the node's addresses are unknown. */
  readonly spec: Live<CertificateSpec | undefined>;
  /** Called after each new pair was stored. */
  readonly onRotated: (pair: StoredPair) => void;
  /** The stored pair was not issued to this store and is replaced at once. */
  readonly isForeign?: boolean;
}

/** Facts about a rotated certificate, for metrics. */
export interface CertificateFacts {
  readonly expiresAt?: number;
  readonly failures: number;
}

/** Rotates a stored certificate: requests a new one in time, with a new key each time, and stores it. */
export class CertificateRotation {
  /** As in Kubernetes: 2 s doubling to 32 s, a tenth of it at random. */
  private readonly backoff: Backoff;
  private readonly random: () => number;
  private readonly state: { expiresAt?: number; failures: number } = { failures: 0 };
  private isForeign: boolean;

  constructor(
    private readonly deps: RotationDeps,
    private readonly options: RotationOptions,
  ) {
    this.random = deps.random ?? Math.random;
    this.isForeign = options.isForeign === true;
    this.backoff = new Backoff({ initialMs: 2_000, maxMs: 32_000, jitter: 0.1, random: this.random });
  }

  /** Expiration of the stored certificate (wall-clock milliseconds; missing without one), and failed rotations. */
  get facts(): CertificateFacts {
    return this.state;
  }

  /** Runs until the signal aborts. Failures are logged and retried. */
  async run({ signal }: Abortable): Promise<void> {
    const wakes = new Wakes(this.deps.clock);
    this.options.spec.onChange(() => wakes.wake(), { signal });
    while (!signal.aborted) {
      const pair = await this.deps.store.load();
      if (pair !== undefined) this.state.expiresAt = pair.notAfter;
      const spec = this.options.spec.current;
      const waitMs = spec === undefined ? Number.POSITIVE_INFINITY : this.untilNext(pair, spec);
      if (waitMs > 0) await wakes.sleep(Math.min(waitMs, LONGEST_SLEEP_MS), signal);
      else if (spec !== undefined) await this.rotate(spec, signal);
    }
  }

  /** Milliseconds until the next rotation, by the wall clock. */
  private untilNext(pair: StoredPair | undefined, spec: CertificateSpec): number {
    const now = this.deps.clock.now().wall;
    const why = whyReplace(pair, spec, now) ?? (this.isForeign ? "it is not our own" : undefined);
    if (why !== undefined) this.deps.log.info("Certificate must be replaced", { signer: spec.signer, why });
    return why !== undefined || pair === undefined ? 0 : rotationTime(pair, this.random()) - now;
  }

  private async rotate(spec: CertificateSpec, signal: AbortSignal): Promise<void> {
    const { clock, log, store } = this.deps;
    try {
      const key = newKey();
      const options = { signal, key, limitMs: SIGNING_LIMIT_MS, name: "generated" } as const;
      const pair = await store.save(await requestCertificate({ api: this.deps.api(), clock }, spec, options), key);
      this.backoff.reset();
      this.isForeign = false;
      log.info("Rotated certificate", {
        signer: spec.signer,
        path: pair.path,
        until: new Date(pair.notAfter).toISOString(),
      });
      this.options.onRotated(pair);
    } catch (error) {
      if (signal.aborted) return;
      this.state.failures++;
      log.error("Failed to rotate certificate", error, { signer: spec.signer });
      await clock.sleep(this.backoff.next(clock.now()), { signal }).catch(() => undefined);
    }
  }
}
