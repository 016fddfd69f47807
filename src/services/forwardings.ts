import type { Forwarding, Protocol, Target } from "../adapters/nftables/index.ts";
import type { Endpoint, EndpointSlice, Service, ServicePort } from "../model/generated/types.ts";

/** How long a client stays with its endpoint unless the service says otherwise, in seconds. */
const AFFINITY_SECONDS = 10_800;
const MOST_AFFINITY_SECONDS = 86_400;
const LAST_PORT = 65_535;
const PROTOCOLS: Readonly<Record<string, Protocol>> = { TCP: "tcp", UDP: "udp", SCTP: "sctp" };

/**
 * One forwarding for each port of a service; none for headless and external ones. IPv4 only. What the kernel would not
 * take is left out: all services are written in one transaction, which fails as a whole. Pure.
 */
export function forwardingsOf(service: Service, slices: readonly EndpointSlice[]): Forwarding[] {
  const { metadata, status } = service;
  const spec = service.spec ?? {};
  const { clusterIP = "", type = "ClusterIP" } = spec;
  if (type === "ExternalName" || !isIpv4(clusterIP)) return [];
  const given = (status?.loadBalancer?.ingress ?? []).map(({ ip = "" }) => ip);
  const addresses = [clusterIP, ...(spec.externalIPs ?? []), ...given].filter(isForwardable);
  const hasNodePorts = type === "NodePort" || type === "LoadBalancer";
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? AFFINITY_SECONDS;
  const affinity = Math.min(Math.max(seconds, 1), MOST_AFFINITY_SECONDS);
  return (spec.ports ?? []).flatMap((port): Forwarding[] => {
    const protocol = PROTOCOLS[port.protocol ?? "TCP"];
    if (protocol === undefined || !isPort(port.port)) return [];
    return [
      {
        key: `${metadata.namespace ?? ""}/${metadata.name ?? ""}/${port.name ?? ""}/${protocol}`,
        protocol,
        addresses: [...new Set(addresses)],
        port: port.port,
        ...(hasNodePorts && isPort(port.nodePort) && { nodePort: port.nodePort }),
        targets: targetsOf(port, slices),
        ...(spec.sessionAffinity === "ClientIP" && { affinitySeconds: affinity }),
      },
    ];
  });
}

/** Ready endpoints; without any, those that still serve while they terminate, as in Kubernetes. */
function targetsOf({ name = "", protocol = "TCP" }: ServicePort, slices: readonly EndpointSlice[]): Target[] {
  const found = slices.flatMap(({ addressType, ports = [], endpoints = [] }) => {
    const match = ports.find((one) => (one.name ?? "") === name && (one.protocol ?? "TCP") === protocol);
    const port = match?.port;
    if (addressType !== "IPv4" || !isPort(port)) return [];
    return endpoints.map((endpoint) => ({ endpoint, port }));
  });
  const ready = found.filter(({ endpoint }) => isReady(endpoint));
  const used = ready.length > 0 ? ready : found.filter(({ endpoint }) => isServingToTheEnd(endpoint));
  const targets = used.flatMap(({ endpoint, port }) => {
    const [ip = ""] = endpoint.addresses;
    return isForwardable(ip) ? [{ ip, port }] : [];
  });
  const byText = new Map(targets.map((target) => [`${target.ip}:${target.port}`, target]));
  // In one order, so that the same endpoints are the same rules.
  return [...byText.keys()].sort().flatMap((key) => byText.get(key) ?? []);
}

/** A missing condition counts as ready. */
export function isReady({ conditions }: Endpoint): boolean {
  return conditions?.ready !== false;
}

function isServingToTheEnd({ conditions }: Endpoint): boolean {
  return conditions?.serving === true && conditions.terminating === true;
}

/** True for an IPv4 address in its one text form: some programs read a leading zero as octal. */
export function isIpv4(text: string): boolean {
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256);
}

/** False for addresses that are not one machine's in the network: none, loopback, multicast and above. */
function isForwardable(ip: string): boolean {
  const first = Number(ip.split(".", 1)[0]);
  return isIpv4(ip) && first !== 0 && first !== 127 && first < 224;
}

function isPort(port: number | undefined): port is number {
  return port !== undefined && port > 0 && port <= LAST_PORT;
}
