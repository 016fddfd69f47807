import { ApiError, ENDPOINT_SLICES, NODES, PODS, SERVICES } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Loop } from "../../lib/loop.ts";
import type { EndpointSlice, Node, Pod, Service } from "../../model/generated/types.ts";
import { matchesLabels } from "../../model/label-selector.ts";
import type { ControllerDeps } from "../controller.ts";
import type { Informer } from "../informers.ts";
import { partsOf } from "../object-index.ts";
import { Reconciler } from "../reconciler.ts";
import { endpointGroups } from "./endpoints-of.ts";
import { isManaged, planSlices, SERVICE_NAME_LABEL } from "./plan-slices.ts";

const ZONE_LABEL = "topology.kubernetes.io/zone";

/** Writes the EndpointSlices of services with a selector, as the controller of Kubernetes does. */
export function endpointSliceController(deps: ControllerDeps): Loop {
  const controller = new EndpointSlices(deps);
  return { name: "endpoint slices", run: (signal) => controller.run(signal) };
}

class EndpointSlices {
  private readonly services: Informer<Service>;
  private readonly pods: Informer<Pod>;
  private readonly nodes: Informer<Node>;
  private readonly slices: Informer<EndpointSlice>;
  private readonly reconciler: Reconciler;

  constructor(private readonly deps: ControllerDeps) {
    this.services = deps.informers.of(SERVICES);
    this.pods = deps.informers.of(PODS);
    this.nodes = deps.informers.of(NODES);
    this.slices = deps.informers.of(ENDPOINT_SLICES);
    this.reconciler = new Reconciler(deps, {
      name: "endpoint slices",
      reconcile: (key, options) => this.reconcile(key, options),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const options = { signal };
    this.services.onChange(({ object }) => this.reconciler.wake(keyOf(object)), options);
    this.pods.onChange((change) => {
      this.wakeServicesOf(change.object);
      if (change.kind === "updated") this.wakeServicesOf(change.previous);
    }, options);
    // Somebody else's change of a slice is undone; one of ours finds nothing to do.
    this.slices.onChange(({ object }) => {
      const name = object.metadata.labels?.[SERVICE_NAME_LABEL];
      if (name !== undefined && isManaged(object)) {
        this.reconciler.wake(`${object.metadata.namespace ?? ""}/${name}`);
      }
    }, options);
    this.nodes.onChange((change) => {
      if (change.kind === "updated" && zoneOf(change.object) === zoneOf(change.previous)) return;
      for (const service of this.services.list()) this.reconciler.wake(keyOf(service));
    }, options);
    await this.reconciler.run(signal);
  }

  private wakeServicesOf(pod: Pod): void {
    for (const service of this.services.list(pod.metadata.namespace ?? "")) {
      if (selects(service, pod)) this.reconciler.wake(keyOf(service));
    }
  }

  private async reconcile(key: string, options: Abortable): Promise<undefined> {
    await Promise.all([this.services, this.pods, this.nodes].map((informer) => informer.synced(options)));
    const { namespace, name } = partsOf(key);
    const service = this.services.get(namespace, name);
    // Without a selector somebody else writes the slices.
    if (service !== undefined && (service.spec?.type === "ExternalName" || !service.spec?.selector)) return undefined;
    // The newest, not the informer's: a slice that was just created must not be created again.
    const query = { namespace, labelSelector: `${SERVICE_NAME_LABEL}=${name}` };
    const found = (await this.deps.api.list(ENDPOINT_SLICES, query, options)).items.filter(isManaged);
    if (service === undefined) await this.remove(found, options);
    else await this.write(service, found, options);
    return undefined;
  }

  private async write(service: Service, found: readonly EndpointSlice[], options: Abortable): Promise<void> {
    const { api } = this.deps;
    const { namespace = "" } = service.metadata;
    const pods = this.pods.list(namespace).filter((pod) => selects(service, pod));
    const families = service.spec?.ipFamilies ?? ["IPv4"];
    const zoneOfNode = (nodeName: string): string | undefined => zoneOf(this.nodes.get("", nodeName));
    await this.remove(
      found.filter(({ addressType }) => !families.includes(addressType)),
      options,
    );
    for (const addressType of families) {
      const groups = endpointGroups({ service, pods, addressType, zoneOf: zoneOfNode });
      const existing = found.filter((slice) => slice.addressType === addressType);
      const { create, update, remove } = planSlices({ service, addressType, groups, existing });
      for (const object of create) await api.create(ENDPOINT_SLICES, { namespace, object }, options);
      for (const object of update) {
        await api.update(ENDPOINT_SLICES, { namespace, name: object.metadata.name ?? "", object }, options);
      }
      await this.remove(remove, options);
    }
  }

  private async remove(slices: readonly EndpointSlice[], options: Abortable): Promise<void> {
    for (const { metadata } of slices) {
      const { namespace = "", name = "", uid = "" } = metadata;
      try {
        await this.deps.api.delete(ENDPOINT_SLICES, { namespace, name, uid }, options);
      } catch (error) {
        if (!(error instanceof ApiError) || (error.code !== "NotFound" && error.code !== "Conflict")) throw error;
      }
    }
  }
}

function keyOf({ metadata }: Service): string {
  return `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
}

function selects({ spec }: Service, { metadata }: Pod): boolean {
  const { selector = {} } = spec ?? {};
  return Object.keys(selector).length > 0 && matchesLabels({ matchLabels: selector }, metadata.labels);
}

function zoneOf(node: Node | undefined): string | undefined {
  return node?.metadata.labels?.[ZONE_LABEL];
}
