import {
  type KubeApi,
  POD_CERTIFICATE_REQUESTS,
  type PodCertificateRequest,
  Reflector,
  SERVICE_ACCOUNTS,
  type StubRequest,
} from "../adapters/kubeapi/index.ts";
import { type Abortable, AbortScope, isAborted } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Pod, PodCertificateProjection } from "../model/generated/types.ts";
import { type IssuedCertificate, outcomeOf, type Refusal } from "./pod-certificate.ts";

/** A `podCertificate` source of a projected volume. */
export interface CertificateNeed {
  readonly pod: Pod;
  readonly volume: string;
  /** Its place among the sources of the volume. */
  readonly index: number;
  readonly source: PodCertificateProjection;
}

export interface PodCertificateDeps {
  readonly api: Pick<KubeApi, "create" | "get" | "list" | "watch">;
  readonly clock: Clock;
  readonly random: () => number;
  /** The feature gate PodCertificateRequest. */
  isEnabled(): boolean;
  /** The Node object; undefined before it is registered. */
  node(): { readonly metadata: { readonly name?: string; readonly uid?: string } } | undefined;
  makeKey(keyType: string): Promise<StubRequest>;
  event(pod: Pod, reason: string, message: string): void;
}

interface Projection {
  readonly need: CertificateNeed;
  readonly listeners: Set<() => void>;
  readonly scope: AbortScope;
  issued?: IssuedCertificate;
  refusal?: Refusal;
  error?: string;
  timers: readonly Timer[];
}

const RETRY = { initialMs: 1000, maxMs: 60_000, jitter: 0.2 };
/** Spreads the refreshes of pods that were started together, in milliseconds, as in Kubernetes. */
const JITTER_MS = 5 * 60_000;
/** A signer that wants an earlier refresh than this gets it this much later, in milliseconds: no endless loop. */
const SHORTEST_MS = 60_000;
/** A refresh is overdue this long after it was due, in milliseconds, as in Kubernetes. */
const OVERDUE_MS = 10 * 60_000;

/**
 * Certificates of pods: requested when a volume begins to follow one, again when the signer wants it refreshed, and
 * forgotten with the volume. Keys are in memory only; after a restart of the agent a new one is requested.
 *
 *   none ──request, issued──► issued ──beginRefreshAt: request──► issued …
 *     └────────┴── denied, failed: for good (of a refresh, too)
 */
export class ApiPodCertificates {
  private readonly projections = new Map<string, Projection>();
  /**
   * One key at a time: a large one keeps a thread busy that files are read by, too. One of each pod waits for it, so that
   * pods take turns, however many keys one of them wants.
   */
  private readonly turns = { pods: new KeyedMutex(), keys: new KeyedMutex() };

  constructor(
    private readonly deps: PodCertificateDeps,
    private readonly signal: AbortSignal,
  ) {}

  /** The key and the chain of certificates. Throws while they are not issued, and if they never will be. */
  credential(need: CertificateNeed): { readonly keyPem: string; readonly chainPem: string } {
    if (!this.deps.isEnabled()) throw new Error("pod certificate: the feature gate PodCertificateRequest is off");
    const { issued, refusal, error } = this.projections.get(keyOf(need)) ?? {};
    if (refusal !== undefined) {
      const { type, reason, message } = refusal;
      throw new Error(
        `PodCertificateRequest was permanently ${type.toLowerCase()}: reason=${JSON.stringify(reason)} message=${JSON.stringify(message)}`,
      );
    }
    if (issued !== undefined) return issued;
    throw new Error(`credential bundle is not issued yet${error === undefined ? "" : `: ${error}`}`);
  }

  /** Requests the certificate and calls `fn` when there is news of it, until the signal aborts. */
  onChange(need: CertificateNeed, fn: () => void, { signal }: Abortable): void {
    if (signal.aborted || this.signal.aborted || !this.deps.isEnabled()) return;
    const key = keyOf(need);
    const known = this.projections.get(key) ?? this.begin(key, need);
    known.listeners.add(fn);
    signal.addEventListener(
      "abort",
      () => {
        known.listeners.delete(fn);
        if (known.listeners.size === 0) this.end(key, known);
      },
      { once: true },
    );
  }

  /** How many certificates are in each state, by signer, for metrics. */
  states(): readonly (readonly [labels: readonly [signer: string, state: string], count: number])[] {
    const counts = new Map<string, { labels: readonly [string, string]; count: number }>();
    for (const projection of this.projections.values()) {
      const labels = [projection.need.source.signerName, this.stateOf(projection)] as const;
      const key = labels.join("\0");
      counts.set(key, { labels, count: (counts.get(key)?.count ?? 0) + 1 });
    }
    return [...counts.values()].map(({ labels, count }) => [labels, count] as const);
  }

  private stateOf({ issued, refusal }: Projection): string {
    if (refusal !== undefined) return refusal.type.toLowerCase();
    if (issued === undefined) return "not_yet_issued";
    const now = this.deps.clock.now().wall;
    if (now > issued.notAfter) return "expired";
    return now > issued.beginRefreshAt + OVERDUE_MS ? "overdue_for_refresh" : "fresh";
  }

  private begin(key: string, need: CertificateNeed): Projection {
    const scope = new AbortScope([this.signal]);
    const projection: Projection = { need, listeners: new Set(), scope, timers: [] };
    this.projections.set(key, projection);
    void this.follow(projection);
    return projection;
  }

  private end(key: string, projection: Projection): void {
    projection.scope.abort();
    projection.scope.dispose();
    for (const timer of projection.timers) timer.cancel();
    if (this.projections.get(key) === projection) this.projections.delete(key);
  }

  private async follow(projection: Projection): Promise<void> {
    const { signal } = projection.scope;
    const { clock } = this.deps;
    const backoff = new Backoff(RETRY);
    while (!signal.aborted && projection.refusal === undefined) {
      let waitMs: number;
      try {
        this.take(projection, await this.request(projection.need, { signal }));
        backoff.reset();
        waitMs = this.untilRefresh(projection);
      } catch (error) {
        if (isAborted(error, signal)) return;
        projection.error = messageOf(error);
        waitMs = backoff.next(clock.now());
        if (projection.issued === undefined) for (const listener of [...projection.listeners]) listener();
      }
      if (projection.refusal === undefined) await clock.sleep(waitMs, { signal }).catch(() => undefined);
    }
  }

  private take(projection: Projection, outcome: IssuedCertificate | (Refusal & { readonly name: string })): void {
    const { pod } = projection.need;
    if ("type" in outcome) {
      projection.refusal = outcome;
      const what = outcome.type === "Denied" ? "was denied" : "failed";
      const why = `reason=${JSON.stringify(outcome.reason)}, message=${JSON.stringify(outcome.message)}`;
      this.deps.event(pod, outcome.type, `PodCertificateRequest ${outcome.name} ${what}, ${why}`);
    } else {
      projection.issued = outcome;
      delete projection.error;
      this.watchAge(projection, outcome);
    }
    for (const listener of [...projection.listeners]) listener();
  }

  private untilRefresh({ issued }: Projection): number {
    const { clock, random } = this.deps;
    const waitMs = (issued?.beginRefreshAt ?? 0) + random() * JITTER_MS - clock.now().wall;
    // A time that cannot be read is not a number.
    return Math.max(SHORTEST_MS, Number.isFinite(waitMs) ? waitMs : 0);
  }

  /** Tells the pod's owner when a certificate is not replaced in time. */
  private watchAge(projection: Projection, { beginRefreshAt, notAfter }: IssuedCertificate): void {
    const { clock, event } = this.deps;
    const { pod } = projection.need;
    for (const timer of projection.timers) timer.cancel();
    const at = (wall: number, reason: string, message: string): Timer =>
      clock.after(wall - clock.now().wall, () => event(pod, reason, message));
    projection.timers = [
      at(beginRefreshAt + JITTER_MS + OVERDUE_MS, "CertificateOverdueForRefresh", "PodCertificate refresh overdue"),
      at(notAfter, "CertificateExpired", "PodCertificate expired"),
    ];
  }

  /** One request and its outcome. Rejects if it cannot be made, or is deleted before the signer decided. */
  private async request(
    { pod, source }: CertificateNeed,
    options: Abortable,
  ): Promise<IssuedCertificate | (Refusal & { readonly name: string })> {
    const { api } = this.deps;
    const { namespace = "", name: podName = "", uid: podUID = "" } = pod.metadata;
    const serviceAccountName = pod.spec.serviceAccountName || "default";
    const account = await api.get(SERVICE_ACCOUNTS, { namespace, name: serviceAccountName }, options);
    const { name: nodeName, uid: nodeUID } = this.deps.node()?.metadata ?? {};
    if (nodeName === undefined || nodeUID === undefined) throw new Error("the node is not registered yet");
    const { pods, keys } = this.turns;
    const makeKey = () => keys.run("key", () => this.deps.makeKey(source.keyType), options);
    const { keyPem, request: stubPKCS10Request } = await pods.run(podUID, makeKey, options);
    const { maxExpirationSeconds, userAnnotations } = source;
    const object: PodCertificateRequest = {
      metadata: {
        namespace,
        generateName: "req-",
        ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: podName, uid: podUID }],
      },
      spec: {
        signerName: source.signerName,
        podName,
        podUID,
        serviceAccountName,
        serviceAccountUID: account.metadata.uid ?? "",
        nodeName,
        nodeUID,
        stubPKCS10Request,
        ...(maxExpirationSeconds !== undefined && { maxExpirationSeconds }),
        ...(userAnnotations && { unverifiedUserAnnotations: userAnnotations }),
      },
    };
    const created = await api.create(POD_CERTIFICATE_REQUESTS, { namespace, object }, options);
    const outcome = outcomeOf(created, keyPem) ?? (await this.decision(created, keyPem, options));
    return "type" in outcome ? { ...outcome, name: `${namespace}/${created.metadata.name ?? ""}` } : outcome;
  }

  /** Waits, as long as it takes, for the signer of a request. */
  private async decision(
    { metadata }: PodCertificateRequest,
    keyPem: string,
    { signal }: Abortable,
  ): Promise<IssuedCertificate | Refusal> {
    const { name = "", namespace = "", uid } = metadata;
    const scope = new AbortScope([signal]);
    let outcome: IssuedCertificate | Refusal | undefined;
    try {
      const nodeName = this.deps.node()?.metadata.name ?? "";
      const reflector: Reflector<PodCertificateRequest> = new Reflector(this.deps, {
        resource: POD_CERTIFICATE_REQUESTS,
        // A node may only watch the requests of its pods.
        select: { namespace, fieldSelector: `metadata.name=${name},spec.nodeName=${nodeName}` },
        firstList: "latest",
        onChange: ({ kind, object }) => {
          if (object.metadata.uid === uid && kind !== "deleted") outcome ??= outcomeOf(object, keyPem);
          if (outcome !== undefined || kind === "deleted") scope.abort();
        },
        onSync: () => {
          if (!reflector.objects.has(`${namespace}/${name}`)) scope.abort();
        },
      });
      await reflector.run(scope);
    } finally {
      scope.dispose();
    }
    signal.throwIfAborted();
    if (outcome === undefined) throw new Error(`PodCertificateRequest ${namespace}/${name} was deleted`);
    return outcome;
  }
}

function keyOf({ pod, volume, index }: CertificateNeed): string {
  return `${pod.metadata.uid ?? ""}/${volume}/${index}`;
}
