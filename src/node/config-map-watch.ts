import { type ApiError, CONFIG_MAPS, type KubeApi, Reflector } from "../adapters/kubeapi/index.ts";
import { AbortScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { ConfigMap } from "../model/generated/types.ts";
import type { WantedConfigMap } from "./config-assignment.ts";

export interface ConfigMapWatchDeps {
  readonly api: Pick<KubeApi, "list" | "watch">;
  readonly clock: Clock;
  readonly random: () => number;
}

/** The known state of a ConfigMap. `error`: it cannot be read. */
export type SeenConfigMap =
  | { readonly kind: "nothing" }
  | { readonly kind: "found"; readonly object: ConfigMap }
  | { readonly kind: "missing" }
  | { readonly kind: "error"; readonly error: ApiError };

/** One ConfigMap, watched until `close`. A rejected request ends the watch: a retry needs a new one. */
export class ConfigMapWatch {
  private state: SeenConfigMap = { kind: "nothing" };
  private readonly scope: AbortScope;

  constructor(
    deps: ConfigMapWatchDeps,
    { namespace, name }: WantedConfigMap,
    options: { readonly signal: AbortSignal; readonly changed: () => void },
  ) {
    this.scope = new AbortScope([options.signal]);
    const set = (state: SeenConfigMap): void => {
      if (this.scope.signal.aborted) return;
      this.state = state;
      options.changed();
    };
    const look = (): void => {
      const [object] = reflector.objects.values();
      set(object === undefined ? { kind: "missing" } : { kind: "found", object });
    };
    const reflector = new Reflector<ConfigMap>(deps, {
      resource: CONFIG_MAPS,
      // With a permission for one name the server allows no other selection.
      select: { namespace, fieldSelector: `metadata.name=${name}` },
      firstList: "latest",
      onChange: () => {
        if (reflector.hasSynced) look();
      },
      onSync: look,
      onError: (error) => {
        const isRefused = error.code === "Forbidden" || error.code === "Unauthorized";
        // A server that is unavailable for a while does not change what was read before.
        if (!isRefused && reflector.hasSynced) return;
        set({ kind: "error", error });
        if (isRefused) this.close();
      },
    });
    void reflector.run(this.scope).finally(() => this.scope.dispose());
  }

  get seen(): SeenConfigMap {
    return this.state;
  }

  /** False once it was rejected or closed. */
  get isOpen(): boolean {
    return !this.scope.signal.aborted;
  }

  close(): void {
    this.scope.abort();
  }
}
