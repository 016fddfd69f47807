import type { Service, ServicePort } from "../../../model/generated/types.ts";
import { duplicate, type FieldError, invalid, notSupported, required } from "../../status/field-error.ts";
import { labelProblems, portNameProblems, portProblems, subdomainProblems } from "../../validation/formats.ts";
import { validateLabels } from "../../validation/object-meta.ts";

const TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS = ["SCTP", "TCP", "UDP"];
const AFFINITIES = ["ClientIP", "None"];
const POLICIES = ["Cluster", "Local"];
const MOST_AFFINITY_SECONDS = 86_400;

/** What is wrong with a service, beside its metadata. */
export function serviceErrors({ spec }: Service): FieldError[] {
  const errors: FieldError[] = [];
  const { type = "", ports = [], clusterIP = "", sessionAffinity = "" } = spec;
  const isHeadless = clusterIP === "None";
  if (ports.length === 0 && !isHeadless && type !== "ExternalName") errors.push(required("spec.ports"));
  if (type === "ExternalName") {
    const name = (spec.externalName ?? "").replace(/\.$/, "");
    if (name === "") errors.push(required("spec.externalName"));
    else errors.push(...subdomainProblems(name).map((message) => invalid("spec.externalName", name, message)));
  }
  const names = new Set<string>();
  const taken = new Set<string>();
  for (const [index, port] of ports.entries()) {
    errors.push(...portErrors(port, { path: `spec.ports[${index}]`, isSingle: ports.length === 1, names }));
    const key = `${port.protocol}/${port.port}`;
    if (taken.has(key)) errors.push(duplicate(`spec.ports[${index}]`, { protocol: port.protocol, port: port.port }));
    taken.add(key);
  }
  if (spec.selector !== undefined) errors.push(...validateLabels(spec.selector, "spec.selector"));
  if (!AFFINITIES.includes(sessionAffinity)) {
    errors.push(notSupported("spec.sessionAffinity", sessionAffinity, AFFINITIES));
  }
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds;
  if (sessionAffinity === "ClientIP" && seconds !== undefined && (seconds <= 0 || seconds > MOST_AFFINITY_SECONDS)) {
    const message = `must be greater than 0 and less than ${MOST_AFFINITY_SECONDS}`;
    errors.push(invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, message));
  }
  if (!TYPES.includes(type)) errors.push(notSupported("spec.type", type, TYPES));
  if (isHeadless && (type === "NodePort" || type === "LoadBalancer")) {
    const message = `may not be set to 'None' for ${type} services`;
    errors.push(invalid("spec.clusterIPs[0]", clusterIP, message));
  }
  for (const field of ["internalTrafficPolicy", "externalTrafficPolicy"] as const) {
    const policy = spec[field];
    if (policy !== undefined && !POLICIES.includes(policy)) {
      errors.push(notSupported(`spec.${field}`, policy, POLICIES));
    }
  }
  return errors;
}

interface PortPlace {
  readonly path: string;
  readonly isSingle: boolean;
  readonly names: Set<string>;
}

function portErrors(port: ServicePort, { path, isSingle, names }: PortPlace): FieldError[] {
  const errors: FieldError[] = [];
  const { name = "", protocol = "", targetPort } = port;
  if (name === "") {
    if (!isSingle) errors.push(required(`${path}.name`));
  } else {
    errors.push(...labelProblems(name).map((message) => invalid(`${path}.name`, name, message)));
    if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
  }
  errors.push(...portProblems(port.port).map((message) => invalid(`${path}.port`, port.port, message)));
  if (!PROTOCOLS.includes(protocol)) errors.push(notSupported(`${path}.protocol`, protocol, PROTOCOLS));
  if (typeof targetPort === "number") {
    errors.push(...portProblems(targetPort).map((message) => invalid(`${path}.targetPort`, targetPort, message)));
  } else if (typeof targetPort === "string") {
    errors.push(...portNameProblems(targetPort).map((message) => invalid(`${path}.targetPort`, targetPort, message)));
  }
  return errors;
}

/** What is wrong with a change of a service: its address stays. */
export function serviceChange({ spec }: Service, { spec: old }: Service): FieldError[] {
  const isKept = old.type !== "ExternalName" && spec.type !== "ExternalName" && (old.clusterIP ?? "") !== "";
  if (!isKept || spec.clusterIP === old.clusterIP) return [];
  return [invalid("spec.clusterIPs[0]", [spec.clusterIP ?? ""], "may not change once set")];
}
