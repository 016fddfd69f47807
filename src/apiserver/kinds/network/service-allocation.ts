import { SERVICES } from "../../../adapters/kubeapi/index.ts";
import type { Service, ServicePort, ServiceSpec } from "../../../model/generated/types.ts";
import { invalid } from "../../status/field-error.ts";
import { internalError, invalidObject } from "../../status/status-error.ts";
import type { WriteContext } from "../kind.ts";
import type { AddressRange } from "./address-range.ts";

/** Where services get their addresses and ports from. */
export interface ServiceRanges {
  readonly addresses: AddressRange;
  /** First and last port, both included. */
  readonly nodePorts: readonly [first: number, last: number];
  /** 0 to below 1. */
  readonly random: () => number;
}

/** The service with its address and node ports. Throws `StatusError` if a wanted one is taken or none is left. */
export function allocateService(service: Service, { read }: WriteContext, ranges: ServiceRanges): Service {
  const spec = service.spec ?? {};
  if (spec.type === "ExternalName") return service;
  const others = read.list(SERVICES).filter(({ metadata }) => metadata.uid !== service.metadata.uid);
  const addressed = withAddress(service, others, ranges);
  const hasPorts = spec.type === "NodePort" || spec.type === "LoadBalancer";
  return { ...service, spec: hasPorts ? withNodePorts(service, { spec: addressed, others }, ranges) : addressed };
}

function withAddress(service: Service, others: readonly Service[], { addresses, random }: ServiceRanges): ServiceSpec {
  const spec = service.spec ?? {};
  const families = { ipFamilies: spec.ipFamilies ?? ["IPv4"], ipFamilyPolicy: spec.ipFamilyPolicy ?? "SingleStack" };
  const wanted = spec.clusterIP || spec.clusterIPs?.[0] || "";
  if (wanted === "None") return { ...spec, ...families, clusterIP: "None", clusterIPs: ["None"] };
  const taken = new Set(others.map((other) => other.spec?.clusterIP ?? ""));
  if (wanted !== "") {
    const problem = !addresses.has(wanted)
      ? `failed to allocate IP ${wanted}: the provided IP (${wanted}) is not in the valid range. The range of valid IPs is ${addresses.cidr}`
      : taken.has(wanted)
        ? `failed to allocate IP ${wanted}: provided IP is already allocated`
        : undefined;
    if (problem !== undefined) throw refused(service, "spec.clusterIPs", [wanted], problem);
    return { ...spec, ...families, clusterIP: wanted, clusterIPs: [wanted] };
  }
  const chosen = addresses.choose(taken, random);
  if (chosen === undefined) throw internalError("failed to allocate a serviceIP: range is full");
  return { ...spec, ...families, clusterIP: chosen, clusterIPs: [chosen] };
}

function withNodePorts(
  service: Service,
  { spec, others }: { readonly spec: ServiceSpec; readonly others: readonly Service[] },
  ranges: ServiceRanges,
): ServiceSpec {
  const taken = new Set(others.flatMap((other) => (other.spec?.ports ?? []).map(portKey)));
  const isAllocated = spec.type !== "LoadBalancer" || spec.allocateLoadBalancerNodePorts !== false;
  const ports = (spec.ports ?? []).map((port, index): ServicePort => {
    // One that is given is checked all the same.
    if (!port.nodePort && !isAllocated) return port;
    const nodePort = port.nodePort || choosePort(port, taken, ranges);
    const [first, last] = ranges.nodePorts;
    const path = `spec.ports[${index}].nodePort`;
    if (nodePort < first || nodePort > last) {
      const message = `provided port is not in the valid range. The range of valid ports is ${first}-${last}`;
      throw refused(service, path, nodePort, message);
    }
    if (taken.has(portKey({ ...port, nodePort })))
      throw refused(service, path, nodePort, "provided port is already allocated");
    taken.add(portKey({ ...port, nodePort }));
    return { ...port, nodePort };
  });
  return { ...spec, ports };
}

function choosePort(port: ServicePort, taken: ReadonlySet<string>, { nodePorts, random }: ServiceRanges): number {
  const [first, last] = nodePorts;
  const count = last - first + 1;
  const begin = Math.floor(random() * count);
  for (let step = 0; step < count; step++) {
    const nodePort = first + ((begin + step) % count);
    if (!taken.has(portKey({ ...port, nodePort }))) return nodePort;
  }
  throw internalError("failed to allocate a nodePort: range is full");
}

function portKey({ nodePort = 0, protocol = "TCP" }: ServicePort): string {
  return `${protocol}/${nodePort}`;
}

// The value comes before the message, as in an error of a field.
function refused(service: Service, path: string, ...[value, message]: readonly [unknown, string]) {
  return invalidObject(SERVICES, service.metadata.name ?? "", [invalid(path, value, message)]);
}

/** What a client left out of an update is as it was; what another type does not have is given back. */
export function releasedFields(next: Service, old: Service): Service {
  const spec = next.spec ?? {};
  const was = old.spec ?? {};
  if (spec.type === "ExternalName") {
    const { clusterIP: _ip, clusterIPs: _ips, ipFamilies: _families, ipFamilyPolicy: _policy, ...rest } = spec;
    return { ...next, spec: rest };
  }
  const isSameKind = was.type !== "ExternalName";
  const kept = {
    ...(isSameKind &&
      !spec.clusterIP &&
      was.clusterIP && { clusterIP: was.clusterIP, clusterIPs: was.clusterIPs ?? [] }),
    ...(isSameKind && !spec.ipFamilies && was.ipFamilies && { ipFamilies: was.ipFamilies }),
    ...(isSameKind && !spec.ipFamilyPolicy && was.ipFamilyPolicy && { ipFamilyPolicy: was.ipFamilyPolicy }),
  };
  const hasNodePorts = spec.type === "NodePort" || spec.type === "LoadBalancer";
  const ports = spec.ports?.map((port): ServicePort => {
    const { nodePort, ...rest } = port;
    if (!hasNodePorts) return nodePort && was.type === spec.type ? port : rest;
    const before = was.ports?.find((one) => one.port === port.port && one.protocol === port.protocol)?.nodePort;
    const chosen = nodePort || before;
    return chosen ? { ...rest, nodePort: chosen } : rest;
  });
  return { ...next, spec: { ...spec, ...kept, ...(ports && { ports }) } };
}
