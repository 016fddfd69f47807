import type { Pod, Service } from "./generated/types.ts";

/**
 * Returns the service variables of a container: always those of the API server, the others of its namespace if
 * `enableServiceLinks` is set. Pure.
 */
export function serviceVariables(pod: Pod, services: Iterable<Service>): ReadonlyMap<string, string> {
  const own = pod.metadata.namespace ?? "";
  const wantsLinks = pod.spec.enableServiceLinks !== false;
  const chosen = new Map<string, Service>();
  for (const service of services) {
    const { name = "", namespace = "" } = service.metadata;
    if (!hasAddress(service)) continue;
    const isApiServer = namespace === "default" && name === "kubernetes";
    const isLinked = namespace === own && wantsLinks;
    // A service of the pod's own namespace goes before the API server's of the same name.
    if (isLinked || (isApiServer && !chosen.has(name))) chosen.set(name, service);
  }
  const found = new Map<string, string>();
  const sorted = [...chosen].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, service] of sorted) addService(name, service, found);
  return found;
}

function hasAddress({ spec }: Service): boolean {
  return spec.clusterIP !== undefined && spec.clusterIP !== "" && spec.clusterIP !== "None";
}

function addService(name: string, { spec }: Service, found: Map<string, string>): void {
  const prefix = variableName(name);
  const address = spec.clusterIP ?? "";
  const ports = spec.ports ?? [];
  const first = ports[0];
  if (first === undefined) return;
  const host = address.includes(":") ? `[${address}]` : address;
  const url = (port: (typeof ports)[number]): string => `${protocolOf(port)}://${host}:${port.port}`;
  found.set(`${prefix}_SERVICE_HOST`, address);
  found.set(`${prefix}_SERVICE_PORT`, String(first.port));
  for (const port of ports) {
    if (port.name) found.set(`${prefix}_SERVICE_PORT_${variableName(port.name)}`, String(port.port));
  }
  found.set(`${prefix}_PORT`, url(first));
  for (const port of ports) {
    const one = `${prefix}_PORT_${port.port}_${protocolOf(port).toUpperCase()}`;
    found.set(one, url(port));
    found.set(`${one}_PROTO`, protocolOf(port));
    found.set(`${one}_PORT`, String(port.port));
    found.set(`${one}_ADDR`, address);
  }
}

function protocolOf({ protocol = "TCP" }: { readonly protocol?: string }): string {
  return protocol.toLowerCase();
}

function variableName(name: string): string {
  return name.toUpperCase().replaceAll("-", "_");
}
