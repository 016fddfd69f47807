import type { Pod } from "./generated/types.ts";

const LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const QUALIFIED = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const PORT_NAME = /^[a-z0-9](?:-?[a-z0-9])*$/;
const MAX_HOSTNAME = 63;
const MAX_FQDN = 64;

/** A DNS label: container, volume and namespace names. */
export function isDnsLabel(text: string): boolean {
  return text.length <= 63 && LABEL.test(text);
}

/** A DNS name in lower case: pod and node names. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && SUBDOMAIN.test(text);
}

/** A label or annotation key: `name` or `domain/name`. */
export function isQualifiedName(text: string): boolean {
  const slash = text.indexOf("/");
  const name = text.slice(slash + 1);
  if (slash !== -1 && !isDnsSubdomain(text.slice(0, slash))) return false;
  return name.length <= 63 && QUALIFIED.test(name);
}

/** A label's value: empty, or like the name part of a key. */
export function isLabelValue(text: string): boolean {
  return text === "" || (text.length <= 63 && QUALIFIED.test(text));
}

/** A port's name: at most 15 characters, at least one letter. */
export function isPortName(text: string): boolean {
  return text.length <= 15 && PORT_NAME.test(text) && /[a-z]/.test(text);
}

/** A variable's name: printable ASCII without `=`, as Kubernetes allows since 1.34. */
export function isEnvName(text: string): boolean {
  return /^[\x20-\x3c\x3e-\x7e]+$/.test(text);
}

/** Name of the pod's directory below the pod log directory. */
export function podLogDirectoryName(pod: { namespace: string; name: string; uid: string }): string {
  return `${pod.namespace}_${pod.name}_${pod.uid}`;
}

/** A container's log file relative to the pod's log directory. */
export function containerLogPath(container: string, restartCount: number): string {
  return `${container}/${restartCount}.log`;
}

/** Name of the link in /var/log/containers; cut so that it fits the 255 bytes of a file name. */
export function logLinkName(of: { pod: string; namespace: string; container: string; containerId: string }): string {
  return `${`${of.pod}_${of.namespace}_${of.container}-${of.containerId}`.slice(0, 251)}.log`;
}

/** A host name with its domain (empty when it has none). */
export interface HostName {
  readonly hostname: string;
  readonly domain: string;
  /** What the sandbox is called: the host name, or the FQDN if the pod sets setHostnameAsFQDN. */
  readonly sandboxHostname: string;
  /** Set when the full name is too long; the sandbox must not be made then. */
  readonly error?: string;
}

/** The names that a pod is known by on its network. `clusterDomain` may be empty. */
export function podHostName(pod: Pod, clusterDomain: string): HostName {
  const { spec, metadata } = pod;
  if (spec.hostnameOverride !== undefined && spec.hostnameOverride !== "") {
    return { hostname: spec.hostnameOverride, domain: "", sandboxHostname: spec.hostnameOverride };
  }
  const hostname = truncateHostname(spec.hostname || metadata.name || "");
  const domain = spec.subdomain ? `${spec.subdomain}.${metadata.namespace ?? ""}.svc.${clusterDomain}` : "";
  if (!spec.setHostnameAsFQDN || domain === "") return { hostname, domain, sandboxHostname: hostname };
  const full = `${hostname}.${domain}`;
  if (full.length <= MAX_FQDN) return { hostname, domain, sandboxHostname: full };
  const error =
    `failed to construct FQDN from pod hostname and cluster domain, FQDN ${full} is too long ` +
    `(${MAX_FQDN} characters is the max, ${full.length} characters requested)`;
  return { hostname, domain, sandboxHostname: full, error };
}

/** Cut to what the kernel takes, and never ending in `-` or `.`. */
export function truncateHostname(name: string): string {
  return name.length > MAX_HOSTNAME ? name.slice(0, MAX_HOSTNAME).replace(/[-.]+$/, "") : name;
}
