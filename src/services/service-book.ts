import { ENDPOINT_SLICES, type KubeApi, Reflector, SERVICES } from "../adapters/kubeapi/index.ts";
import { type Abortable, isAborted } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { Listeners } from "../lib/listeners.ts";
import type { Logger } from "../lib/log.ts";
import type { EndpointSlice, Service } from "../model/generated/types.ts";

const SERVICE_NAME_LABEL = "kubernetes.io/service-name";

export interface ServiceBookDeps {
  readonly api: Pick<KubeApi, "list" | "watch">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Services with their slices, as the API has them. Rules and names are made from it. */
export class ServiceBook {
  private readonly services: Reflector<Service>;
  private readonly slices: Reflector<EndpointSlice>;
  private readonly slicesOf = new Map<string, Map<string, EndpointSlice>>();
  private readonly changes = new Listeners<string>();

  constructor(deps: ServiceBookDeps) {
    const onError = ({ code, message }: { code: string; message: string }): void =>
      deps.log.debug(2, "Failed to watch services", { code, message });
    const common = { select: {}, firstList: "latest", onError, onSync: () => this.changes.call("") } as const;
    this.services = new Reflector<Service>(deps, {
      ...common,
      resource: SERVICES,
      onChange: ({ object }) => this.changes.call(nameOf(object)),
    });
    this.slices = new Reflector<EndpointSlice>(deps, {
      ...common,
      resource: ENDPOINT_SLICES,
      onChange: (change) => {
        if (change.kind === "updated") this.file(change.previous, "out");
        this.file(change.object, change.kind === "deleted" ? "out" : "in");
      },
    });
  }

  /** True once everything was listed. */
  get hasSynced(): boolean {
    return this.services.hasSynced && this.slices.hasSynced;
  }

  get all(): Iterable<Service> {
    return this.services.objects.values();
  }

  /** By `namespace/name`. */
  get(key: string): Service | undefined {
    return this.services.objects.get(key);
  }

  endpoints(key: string): readonly EndpointSlice[] {
    return [...(this.slicesOf.get(key)?.values() ?? [])];
  }

  /** Calls `fn` with the key of each service that changed, and with an empty one after a complete list. */
  onChange(fn: (key: string) => void, options: Abortable): void {
    this.changes.add(fn, options);
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await Promise.all([this.services.run({ signal }), this.slices.run({ signal })]);
    } catch (error) {
      if (!isAborted(error, signal)) throw error;
    }
  }

  private file(slice: EndpointSlice, way: "in" | "out"): void {
    const { namespace = "", name = "", labels } = slice.metadata;
    const service = labels?.[SERVICE_NAME_LABEL];
    if (service === undefined) return;
    const key = `${namespace}/${service}`;
    const filed = this.slicesOf.get(key) ?? new Map<string, EndpointSlice>();
    if (way === "in") filed.set(name, slice);
    else filed.delete(name);
    if (filed.size === 0) this.slicesOf.delete(key);
    else this.slicesOf.set(key, filed);
    this.changes.call(key);
  }
}

function nameOf({ metadata }: Service): string {
  return `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
}
