import {
  type ApiError,
  type KubeApi,
  type ObjectChange,
  Reflector,
  TRUST_BUNDLES,
  type TrustBundle,
} from "../adapters/kubeapi/index.ts";
import { type Abortable, AbortScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { Listeners } from "../lib/listeners.ts";
import type { Logger } from "../lib/log.ts";
import type { ClusterTrustBundleProjection } from "../model/generated/types.ts";
import { matchesLabels } from "../model/label-selector.ts";

/** How long a pod waits for the first list before it reports an error, in milliseconds. */
const FIRST_LIST_MS = 3000;
/** Interval between attempts with all versions of the API, in milliseconds. */
const ASK_AGAIN_MS = 30_000;

interface TrustDeps {
  readonly api: Pick<KubeApi, "list" | "watch">;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Watch {
  readonly scope: AbortScope;
  reflector?: Reflector<TrustBundle>;
}

/**
 * ClusterTrustBundles. They are few, and a selector may match any of them, so one watch covers all, but only while a pod
 * of this node refers to one.
 */
export class ApiTrustBundles {
  private readonly listeners = new Listeners<readonly TrustBundle[]>(() => this.end());
  private readonly waiters = new Set<() => void>();
  private watch: Watch | undefined;
  /** Index of the API version that the server supports. */
  private version = 0;
  private error: ApiError | undefined;

  constructor(
    private readonly deps: TrustDeps,
    private readonly signal: AbortSignal,
  ) {}

  /** Returns the texts of all matching bundles; undefined if none matches. Rejects if they cannot be listed. */
  async bundles(selection: ClusterTrustBundleProjection, options: Abortable): Promise<readonly string[] | undefined> {
    const scope = new AbortScope([options.signal]);
    try {
      // A reader counts as a listener, too: the watch may have to start for it.
      this.onChange(selection, () => undefined, scope);
      if (this.watch?.reflector?.hasSynced !== true) await this.firstList(options);
      const all = [...(this.watch?.reflector?.objects.values() ?? [])];
      const meant = all.filter((bundle) => isMeant(selection, bundle));
      return meant.length === 0 ? undefined : meant.map(({ spec }) => spec.trustBundle);
    } finally {
      scope.abort();
      scope.dispose();
    }
  }

  /** Calls `fn` after each change of the matching bundles until the signal aborts. */
  onChange(selection: ClusterTrustBundleProjection, fn: () => void, options: Abortable): void {
    if (options.signal.aborted || this.signal.aborted) return;
    const onTouched = (touched: readonly TrustBundle[]): void => {
      if (touched.some((bundle) => isMeant(selection, bundle))) fn();
    };
    this.listeners.add(onTouched, options);
    this.watch ??= this.begin();
  }

  private begin(): Watch {
    const watch = { scope: new AbortScope([this.signal]) };
    void this.follow(watch).finally(() => watch.scope.dispose());
    return watch;
  }

  /** Runs one reflector after the other: the next one if the server does not support this API version. */
  private async follow(watch: Watch): Promise<void> {
    const { signal } = watch.scope;
    while (!signal.aborted) {
      const attempt = new AbortScope([signal]);
      watch.reflector = this.reflect(attempt);
      await watch.reflector.run(attempt).finally(() => attempt.dispose());
      if (signal.aborted) return;
      this.version = (this.version + 1) % TRUST_BUNDLES.length;
      // No version is supported: the server may support one after its next start.
      if (this.version === 0) await this.deps.clock.sleep(ASK_AGAIN_MS, { signal }).catch(() => undefined);
    }
  }

  private reflect(attempt: AbortScope): Reflector<TrustBundle> {
    const [first] = TRUST_BUNDLES;
    return new Reflector<TrustBundle>(this.deps, {
      resource: TRUST_BUNDLES[this.version] ?? first,
      select: {},
      firstList: "latest",
      onChange: (change) => this.changed(change),
      onSync: () => {
        this.error = undefined;
        for (const waiter of this.waiters) waiter();
        this.waiters.clear();
      },
      onError: (error) => {
        this.error = error;
        this.deps.log.warn("Failed to watch ClusterTrustBundles", {
          code: error.code,
          error: error.message,
        });
        if (error.code === "NotFound") attempt.abort();
      },
    });
  }

  private end(): void {
    this.watch?.scope.abort();
    this.watch = undefined;
  }

  private changed(change: ObjectChange<TrustBundle>): void {
    this.listeners.call(change.kind === "updated" ? [change.previous, change.object] : [change.object]);
  }

  private async firstList({ signal }: Abortable): Promise<void> {
    const scope = new AbortScope([signal], { clock: this.deps.clock, ms: FIRST_LIST_MS });
    let isSynced = false;
    try {
      await new Promise<void>((resolve) => {
        this.waiters.add(() => {
          isSynced = true;
          resolve();
        });
        scope.signal.addEventListener("abort", () => resolve(), { once: true });
      });
    } finally {
      scope.dispose();
    }
    signal.throwIfAborted();
    if (isSynced) return;
    if (this.error?.code === "NotFound")
      throw new Error("list ClusterTrustBundles: the API server does not serve them");
    throw this.error ?? new Error("list ClusterTrustBundles: API server is unavailable");
  }
}

function isMeant({ name, signerName, labelSelector }: ClusterTrustBundleProjection, bundle: TrustBundle): boolean {
  if (name !== undefined) return bundle.metadata.name === name;
  return bundle.spec.signerName === signerName && matchesLabels(labelSelector, bundle.metadata.labels);
}
