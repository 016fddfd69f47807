import { SERVICES } from "../../../adapters/kubeapi/index.ts";
import type { Service, ServicePort, ServiceSpec } from "../../../model/generated/types.ts";
import { AGE, labelsText, NAME, tableOf } from "../../tables/columns.ts";
import { defineKind, type Kind } from "../kind.ts";
import { allocateService, releasedFields, type ServiceRanges } from "./service-allocation.ts";
import { serviceChange, serviceErrors } from "./service-validation.ts";

const AFFINITY_SECONDS = 10_800;

/** Services get their addresses and ports when they are written: two never get the same. */
export function serviceKind(ranges: ServiceRanges): Kind {
  return defineKind<Service>({
    resource: SERVICES,
    shortNames: ["svc"],
    categories: ["all"],
    nameRule: "service",
    createsOnUpdate: true,
    returnsDeleted: true,
    defaults: (service) => ({ ...service, spec: defaultSpec(service.spec) }),
    prepareCreate: (service, context) => allocateService(service, context, ranges),
    prepareUpdate: (next, old, context) => allocateService(releasedFields(next, old), context, ranges),
    validate: serviceErrors,
    validateUpdate: serviceChange,
    selectableFields: ({ spec }) => ({ "spec.clusterIP": spec?.clusterIP ?? "", "spec.type": spec?.type ?? "" }),
    status: {},
    table: tableOf<Service>([
      NAME,
      { name: "Type", cell: ({ spec }) => spec?.type ?? "" },
      { name: "Cluster-IP", cell: ({ spec }) => spec?.clusterIPs?.[0] ?? "<none>" },
      { name: "External-IP", cell: externalText },
      { name: "Port(s)", cell: ({ spec }) => (spec?.ports ?? []).map(portText).join(",") || "<none>" },
      AGE,
      { name: "Selector", isWide: true, cell: ({ spec }) => labelsText(spec?.selector) },
    ]),
  });
}

function defaultSpec(spec: ServiceSpec = {}): ServiceSpec {
  const type = spec.type || "ClusterIP";
  const affinity = spec.sessionAffinity || "None";
  const isExternal = type === "NodePort" || type === "LoadBalancer" || (spec.externalIPs ?? []).length > 0;
  const { sessionAffinityConfig, ...rest } = spec;
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds ?? AFFINITY_SECONDS;
  return {
    ...rest,
    type,
    sessionAffinity: affinity,
    ...(affinity === "ClientIP" && { sessionAffinityConfig: { clientIP: { timeoutSeconds: seconds } } }),
    ...(spec.ports && { ports: spec.ports.map(defaultPort) }),
    ...(isExternal && { externalTrafficPolicy: spec.externalTrafficPolicy || "Cluster" }),
    ...(type !== "ExternalName" && { internalTrafficPolicy: spec.internalTrafficPolicy ?? "Cluster" }),
    ...(type === "LoadBalancer" && { allocateLoadBalancerNodePorts: spec.allocateLoadBalancerNodePorts ?? true }),
  };
}

function defaultPort(port: ServicePort): ServicePort {
  const target = port.targetPort;
  return { ...port, protocol: port.protocol || "TCP", targetPort: !target ? port.port : target };
}

function externalText({ spec, status }: Service): string {
  const own = spec?.externalIPs ?? [];
  switch (spec?.type) {
    case "ClusterIP":
    case "NodePort":
      return own.join(",") || "<none>";
    case "LoadBalancer": {
      const ingress = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip || hostname || "");
      return [...new Set(ingress)].sort().concat(own).join(",") || "<pending>";
    }
    case "ExternalName":
      return spec.externalName ?? "";
    default:
      return "<unknown>";
  }
}

function portText({ port, nodePort, protocol = "TCP" }: ServicePort): string {
  return nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;
}
