import { type ApiError, CSI_DRIVERS, type KubeApi, Reflector } from "../adapters/kubeapi/index.ts";
import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { Listeners } from "../lib/listeners.ts";
import { orAborted } from "../lib/or-aborted.ts";
import type { CSIDriver } from "../model/generated/types.ts";

/** Timeout of the first list, in milliseconds; it is retried meanwhile. */
const FIRST_LIST_MS = 3000;

/** The CSIDriver objects of the cluster. They are few: one watch covers all, from the first use on. */
export class ApiCsiDrivers {
  private reflector: Reflector<CSIDriver> | undefined;
  private error: ApiError | undefined;
  private readonly listeners = new Listeners<string>();
  private markSynced: () => void = () => undefined;
  private readonly synced = new Promise<void>((resolve) => {
    this.markSynced = resolve;
  });

  constructor(
    private readonly deps: { readonly api: Pick<KubeApi, "list" | "watch">; readonly clock: Clock },
    private readonly signal: AbortSignal,
  ) {}

  /** Returns the object of a driver; undefined if there is none. Rejects if they cannot be listed in time. */
  async get(name: string, { signal }: Abortable): Promise<CSIDriver | undefined> {
    const reflector = this.follow();
    if (!reflector.hasSynced) await this.firstList(signal);
    return reflector.objects.get(name);
  }

  /** Calls `fn` after each change of the object of a driver until the signal aborts. */
  onChange(name: string, fn: () => void, options: Abortable): void {
    this.follow();
    this.listeners.add((changed) => {
      if (changed === name) fn();
    }, options);
  }

  private follow(): Reflector<CSIDriver> {
    if (this.reflector !== undefined) return this.reflector;
    const reflector = new Reflector<CSIDriver>(this.deps, {
      resource: CSI_DRIVERS,
      select: {},
      firstList: "latest",
      onChange: ({ object }) => this.listeners.call(object.metadata.name ?? ""),
      onSync: () => this.markSynced(),
      onError: (error) => {
        this.error = error;
      },
    });
    this.reflector = reflector;
    void reflector.run({ signal: this.signal });
    return reflector;
  }

  private async firstList(signal: AbortSignal): Promise<void> {
    try {
      const limit = { clock: this.deps.clock, ms: FIRST_LIST_MS };
      await withScope([signal], limit, (inner) => orAborted(this.synced, inner));
    } catch {
      signal.throwIfAborted();
      throw this.error ?? new Error("list CSIDrivers: API server is unavailable");
    }
  }
}
