import type { Endpoint, EndpointSlicePort, Pod, Service, ServicePort } from "../../model/generated/types.ts";

/** Pods that can be reached by the same ports, and these ports: what a group of slices is made of. */
export interface EndpointGroup {
  readonly ports: readonly EndpointSlicePort[];
  readonly endpoints: readonly Endpoint[];
}

export interface EndpointsQuery {
  readonly service: Service;
  /** Those that the selector matches. */
  readonly pods: readonly Pod[];
  readonly addressType: string;
  /** The zone of a node; undefined without one. */
  zoneOf(nodeName: string): string | undefined;
}

/** The endpoints of a service by the ports that they offer, in order of the pods' names. Pure. */
export function endpointGroups({ service, pods, addressType, zoneOf }: EndpointsQuery): Map<string, EndpointGroup> {
  const groups = new Map<string, { ports: readonly EndpointSlicePort[]; endpoints: Endpoint[] }>();
  const ordered = [...pods].sort((a, b) => compare(a.metadata.name ?? "", b.metadata.name ?? ""));
  for (const pod of ordered) {
    if (!isEndpoint(pod)) continue;
    const endpoint = endpointOf(pod, { service, addressType, zone: zoneOf(pod.spec.nodeName ?? "") });
    if (endpoint.addresses.length === 0) continue;
    const ports = portsOf(service, pod);
    const key = portsKey(ports);
    const group = groups.get(key) ?? { ports, endpoints: [] };
    groups.set(key, group);
    group.endpoints.push(endpoint);
  }
  return groups;
}

/** Equal for slices with the same ports, in whatever order. */
export function portsKey(ports: readonly EndpointSlicePort[]): string {
  return ports
    .map(
      ({ name = "", port, protocol = "TCP", appProtocol = "" }) => `${name}/${port ?? ""}/${protocol}/${appProtocol}`,
    )
    .sort()
    .join(",");
}

/** A pod stays an endpoint while it terminates; one that has no address yet, or has ended, is none. */
function isEndpoint({ status }: Pod): boolean {
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return false;
  return (status?.podIPs ?? []).length > 0;
}

function endpointOf(
  pod: Pod,
  { service, addressType, zone }: { service: Service; addressType: string; zone: string | undefined },
): Endpoint {
  const { metadata, spec, status } = pod;
  const serving = status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false;
  const terminating = metadata.deletionTimestamp !== undefined;
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating);
  const isOfType = (ip: string): boolean => ip.includes(":") === (addressType === "IPv6");
  const { namespace = "", name = "", uid = "" } = metadata;
  const hasHostname =
    spec.hostname && spec.subdomain === service.metadata.name && namespace === service.metadata.namespace;
  return {
    addresses: (status?.podIPs ?? []).map(({ ip }) => ip).filter(isOfType),
    conditions: { ready, serving, terminating },
    ...(hasHostname && spec.hostname && { hostname: spec.hostname }),
    ...(spec.nodeName && { nodeName: spec.nodeName }),
    targetRef: { kind: "Pod", namespace, name, uid },
    ...(zone && { zone }),
  };
}

function portsOf(service: Service, pod: Pod): EndpointSlicePort[] {
  return (service.spec?.ports ?? []).flatMap((servicePort) => {
    const port = targetPortOf(servicePort, pod);
    if (port === undefined) return [];
    const { name = "", protocol = "TCP", appProtocol } = servicePort;
    return [{ name, port, protocol, ...(appProtocol !== undefined && { appProtocol }) }];
  });
}

/** The number behind a target port; undefined if the pod has no port of that name and protocol. */
function targetPortOf({ targetPort, port, protocol = "TCP" }: ServicePort, { spec }: Pod): number | undefined {
  if (typeof targetPort === "number") return targetPort === 0 ? port : targetPort;
  if (targetPort === undefined || targetPort === "") return port;
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  for (const { ports = [] } of [...spec.containers, ...sidecars]) {
    const found = ports.find((one) => one.name === targetPort && (one.protocol ?? "TCP") === protocol);
    if (found !== undefined) return found.containerPort;
  }
  return undefined;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
