import type { Endpoint, EndpointSlice, Service, ServicePort } from "../../model/generated/types.ts";
import { isIpv4, isReady } from "../forwardings.ts";
import { CLASS_IN, type DnsAnswer, type DnsRecord, RCODE, type RecordData, TYPE } from "./message.ts";

/** How long clients may keep an answer, in seconds. */
export const TTL = 5;
const HOSTNAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Services as the zone needs them. */
export interface ZoneServices {
  readonly all: Iterable<Service>;
  /** By `namespace/name`. */
  get(key: string): Service | undefined;
  endpoints(key: string): readonly EndpointSlice[];
}

export interface ZoneOptions {
  /** `cluster.local`. */
  readonly domain: string;
  /** The address of this server. */
  readonly address: string;
  /** True for addresses whose names only we know. */
  isOwn(ip: string): boolean;
}

/** What to do with a question: an answer, a name that another one stands for, or somebody else's question. */
export type ZoneResult =
  | { readonly kind: "answer"; readonly answer: DnsAnswer }
  | { readonly kind: "alias"; readonly target: string }
  | { readonly kind: "elsewhere" };

interface Question {
  readonly name: string;
  readonly type: number;
  readonly class: number;
}

interface Found {
  readonly records: readonly DnsRecord[];
  readonly additional?: readonly DnsRecord[];
}

/** Names of services and pods, by the DNS specification of Kubernetes 1.1. Reads the services at each question. */
export class Zone {
  constructor(
    private readonly services: ZoneServices,
    private readonly options: ZoneOptions,
  ) {}

  resolve({ name, type, class: group }: Question): ZoneResult {
    const { domain } = this.options;
    const asked = name.toLowerCase();
    const reverse = addressOf(asked);
    if (reverse !== undefined) return this.reverse(name, reverse, type);
    if (asked !== domain && !asked.endsWith(`.${domain}`)) return { kind: "elsewhere" };
    if (group !== CLASS_IN) return this.answer([], RCODE.refused);
    const labels = asked === domain ? [] : asked.slice(0, -domain.length - 1).split(".");
    const found = this.find(labels, name);
    if (found === "alias") {
      const target = this.externalName(labels);
      return isSendable(target) ? { kind: "alias", target } : this.answer([], RCODE.server);
    }
    if (found === undefined) return this.answer([], RCODE.name);
    const records = found.records.filter(({ data }) => type === TYPE.ANY || codeOf(data) === type);
    return this.answer(records, RCODE.ok, records.length === 0 ? [] : found.additional);
  }

  /** All records of a name; undefined if there is no such name. */
  private find(labels: readonly string[], name: string): Found | "alias" | undefined {
    const kind = labels.at(-1);
    if (kind === undefined) return { records: [this.authority, this.nameServer] };
    if (labels.join(".") === "dns-version") return { records: [record(name, { type: "TXT", text: "1.1.0" })] };
    if (labels.join(".") === "ns.dns") return { records: [record(name, { type: "A", ip: this.options.address })] };
    if (labels.join(".") === "dns") return { records: [] };
    if (kind === "pod") return podRecords(labels, name);
    return kind === "svc" ? this.inServices(labels.slice(0, -1), name) : undefined;
  }

  private inServices(labels: readonly string[], name: string): Found | "alias" | undefined {
    const [namespace, serviceName, ...rest] = [...labels].reverse();
    if (namespace === undefined) return { records: [] };
    if (serviceName === undefined) return this.hasNamespace(namespace) ? { records: [] } : undefined;
    const key = `${namespace}/${serviceName}`;
    const service = this.services.get(key);
    if (service === undefined) return undefined;
    if (service.spec?.type === "ExternalName") return rest.length === 0 ? "alias" : undefined;
    if (rest.length === 0) return { records: this.addresses(service, key, name) };
    if (rest.length === 1) return this.below(service, { key, label: rest[0] ?? "", name });
    const [protocol = "", port = ""] = rest;
    return rest.length === 2 ? this.portRecords(service, { key, port, protocol, name }) : undefined;
  }

  private addresses(service: Service, key: string, name: string): DnsRecord[] {
    const { clusterIP = "" } = service.spec ?? {};
    if (isIpv4(clusterIP)) return [record(name, { type: "A", ip: clusterIP })];
    return this.readyEndpoints(key).map(({ ip }) => record(name, { type: "A", ip }));
  }

  /** An endpoint by its host name or its address with dashes; `_tcp` and `_udp` only have names below them. */
  private below(service: Service, { key, label, name }: { key: string; label: string; name: string }) {
    const protocols = (service.spec?.ports ?? []).map(({ protocol = "TCP" }) => `_${protocol.toLowerCase()}`);
    if (protocols.includes(label)) return { records: [] };
    const found = this.readyEndpoints(key).filter((one) => hostLabel(one) === label || dashed(one.ip) === label);
    return found.length === 0 ? undefined : { records: found.map(({ ip }) => record(name, { type: "A", ip })) };
  }

  private portRecords(
    service: Service,
    { key, port, protocol, name }: { key: string; port: string; protocol: string; name: string },
  ): Found | undefined {
    const [namespace = "", serviceName = ""] = key.split("/");
    const full = `${serviceName}.${namespace}.svc.${this.options.domain}`;
    const wanted = (one: { readonly name?: string; readonly protocol?: string }): boolean =>
      `_${one.name ?? ""}` === port && `_${(one.protocol ?? "TCP").toLowerCase()}` === protocol;
    const { clusterIP = "", ports = [] } = service.spec ?? {};
    const match: ServicePort | undefined = ports.find(wanted);
    if (match === undefined) return undefined;
    if (isIpv4(clusterIP)) {
      const data = { type: "SRV", priority: 0, weight: 100, port: match.port, name: full } as const;
      return { records: [record(name, data)], additional: [record(full, { type: "A", ip: clusterIP })] };
    }
    const targets = this.services.endpoints(key).flatMap(({ ports: offered = [], endpoints = [] }) => {
      const number = offered.find(wanted)?.port;
      return number === undefined ? [] : readyOf(endpoints).map((one) => ({ ...one, number }));
    });
    if (targets.length === 0) return undefined;
    const weight = Math.max(1, Math.floor(100 / targets.length));
    return {
      records: targets.map((one) =>
        record(name, { type: "SRV", priority: 0, weight, port: one.number, name: `${hostLabel(one)}.${full}` }),
      ),
      additional: targets.map((one) => record(`${hostLabel(one)}.${full}`, { type: "A", ip: one.ip })),
    };
  }

  private reverse(name: string, ip: string, type: number): ZoneResult {
    const names = this.namesOf(ip);
    if (names.length === 0) return this.options.isOwn(ip) ? this.answer([], RCODE.name) : { kind: "elsewhere" };
    const records = names.map((one) => record(name, { type: "PTR", name: one }));
    return this.answer(type === TYPE.PTR || type === TYPE.ANY ? records : [], RCODE.ok);
  }

  private namesOf(ip: string): string[] {
    const { domain } = this.options;
    return [...this.services.all].flatMap(({ metadata, spec }) => {
      const { namespace = "", name = "" } = metadata;
      const full = `${name}.${namespace}.svc.${domain}`;
      if (spec?.clusterIP === ip) return [full];
      if (spec?.clusterIP !== "None") return [];
      const found = this.readyEndpoints(`${namespace}/${name}`).filter((one) => one.ip === ip);
      return found.slice(0, 1).map((one) => `${hostLabel(one)}.${full}`);
    });
  }

  private externalName(labels: readonly string[]): string {
    const [serviceName = "", namespace = ""] = labels;
    return (this.services.get(`${namespace}/${serviceName}`)?.spec?.externalName ?? "").replace(/\.$/, "");
  }

  private readyEndpoints(key: string) {
    const found = this.services.endpoints(key).flatMap(({ endpoints = [] }) => readyOf(endpoints));
    return [...new Map(found.map((one) => [`${one.ip} ${one.hostname ?? ""}`, one])).values()];
  }

  private hasNamespace(namespace: string): boolean {
    for (const { metadata } of this.services.all) if (metadata.namespace === namespace) return true;
    return false;
  }

  private get authority(): DnsRecord {
    const { domain } = this.options;
    const data = {
      type: "SOA",
      name: `ns.dns.${domain}`,
      mailbox: `hostmaster.${domain}`,
      serial: 1,
      ttl: TTL,
    } as const;
    return record(domain, data);
  }

  private get nameServer(): DnsRecord {
    return record(this.options.domain, { type: "NS", name: `ns.dns.${this.options.domain}` });
  }

  private answer(answers: readonly DnsRecord[], rcode: number, additional: readonly DnsRecord[] = []): ZoneResult {
    const authority = answers.length === 0 && rcode !== RCODE.refused ? [this.authority] : [];
    return { kind: "answer", answer: { rcode, isAuthoritative: true, answers, authority, additional } };
  }
}

function readyOf(endpoints: readonly Endpoint[]): { ip: string; hostname?: string }[] {
  return endpoints.flatMap((endpoint) => {
    const [ip = ""] = endpoint.addresses;
    if (!isReady(endpoint) || !isIpv4(ip)) return [];
    const { hostname } = endpoint;
    return [{ ip, ...(hostname !== undefined && HOSTNAME.test(hostname) && { hostname }) }];
  });
}

/** True for a name that fits a message: the API takes longer labels than DNS does. */
function isSendable(name: string): boolean {
  return name.length <= 253 && name.split(".").every((label) => label.length > 0 && label.length < 64);
}

function hostLabel({ ip, hostname }: { readonly ip: string; readonly hostname?: string }): string {
  return hostname ?? dashed(ip);
}

function dashed(ip: string): string {
  return ip.replaceAll(".", "-");
}

/** `1-2-3-4.NAMESPACE.pod`: whoever asks for it knows the address already. */
function podRecords(labels: readonly string[], name: string): Found | undefined {
  if (labels.length === 1) return { records: [] };
  const ip = (labels[0] ?? "").replaceAll("-", ".");
  if (labels.length === 2) return { records: [] };
  return labels.length === 3 && isIpv4(ip) ? { records: [record(name, { type: "A", ip })] } : undefined;
}

function record(name: string, data: RecordData): DnsRecord {
  return { name, ttl: TTL, data };
}

function codeOf(data: RecordData): number {
  return data.type === "raw" ? data.code : TYPE[data.type];
}

/** The address in `4.3.2.1.in-addr.arpa`. */
function addressOf(name: string): string | undefined {
  const match = /^(\d+\.\d+\.\d+\.\d+)\.in-addr\.arpa$/.exec(name);
  const ip = match?.[1]?.split(".").reverse().join(".");
  return ip !== undefined && isIpv4(ip) ? ip : undefined;
}
