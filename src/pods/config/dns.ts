import type { Pod } from "../../model/generated/types.ts";

/** The node's resolver file and the cluster's DNS settings. */
export interface DnsFacts {
  /** Content of the node's resolv.conf, empty if there is no such file; undefined if pods must not resolve names. */
  readonly resolvConf: string | undefined;
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  /** The node's addresses; their family decides which loopback address an empty nameserver list becomes. */
  readonly hostIps: readonly string[];
}

export interface DnsConfig {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

/** Warnings about what was truncated, for events. */
export interface DnsResult extends DnsConfig {
  readonly warnings: readonly { readonly reason: string; readonly message: string }[];
}

const MAX_SERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_LINE = 2048;

/** Returns the resolver settings of a pod by its dnsPolicy and dnsConfig. Pure. */
export function podDns(pod: Pod, facts: DnsFacts): DnsResult {
  const warnings: { reason: string; message: string }[] = [];
  const base = baseDns(pod, facts, warnings);
  const extra = pod.spec.dnsConfig;
  const servers = unique([...base.servers, ...(extra?.nameservers ?? [])]);
  const searches = unique([...base.searches, ...(extra?.searches ?? [])]);
  const options = mergeOptions(base.options, extra?.options ?? []);
  const keptServers = servers.slice(0, MAX_SERVERS);
  if (keptServers.length < servers.length) {
    const message = `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${keptServers.join(" ")}`;
    warnings.push({ reason: "DNSConfigForming", message });
  }
  const keptSearches = cutSearches(searches);
  if (keptSearches.length < searches.length) {
    const message = `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${keptSearches.join(" ")}`;
    warnings.push({ reason: "DNSConfigForming", message });
  }
  return { servers: keptServers, searches: keptSearches, options, warnings };
}

function baseDns(pod: Pod, facts: DnsFacts, warnings: { reason: string; message: string }[]): DnsConfig {
  const policy = pod.spec.dnsPolicy ?? "ClusterFirst";
  const host = parseResolvConf(facts.resolvConf ?? "");
  if (policy === "None") return { servers: [], searches: [], options: [] };
  const wantsCluster =
    policy === "ClusterFirstWithHostNet" || (policy === "ClusterFirst" && pod.spec.hostNetwork !== true);
  const own = facts.resolvConf === undefined ? nothing(facts.hostIps) : host;
  if (!wantsCluster) return own;
  if (facts.clusterDns.length === 0) {
    // Without a cluster there is no cluster DNS and the default policy must not warn; only an explicit one does.
    if (policy === "ClusterFirstWithHostNet" || facts.clusterDomain !== "") {
      const message = `pod: "${pod.metadata.name}". kubelet does not have ClusterDNS IP configured and cannot create Pod using "${policy}" policy. Falling back to "Default" policy.`;
      warnings.push({ reason: "MissingClusterDNS", message });
    }
    return own;
  }
  const domain = facts.clusterDomain;
  const cluster = domain === "" ? [] : [`${pod.metadata.namespace}.svc.${domain}`, `svc.${domain}`, domain];
  return { servers: facts.clusterDns, searches: unique([...cluster, ...host.searches]), options: ["ndots:5"] };
}

/** Settings that make every lookup fail at once; without any the runtime would use the node's own file. */
function nothing(hostIps: readonly string[]): DnsConfig {
  const servers = hostIps.map((ip) => (ip.includes(":") ? "::1" : "127.0.0.1"));
  return { servers: unique(servers.length === 0 ? ["127.0.0.1"] : servers), searches: ["."], options: [] };
}

/** Reads nameserver, search (the last one counts) and options lines. */
export function parseResolvConf(text: string): DnsConfig {
  const servers: string[] = [];
  let searches: string[] = [];
  let options: string[] = [];
  for (const line of text.split("\n")) {
    const [word, ...rest] = line
      .replace(/[#;].*$/, "")
      .trim()
      .split(/\s+/);
    if (word === "nameserver" && rest[0] !== undefined) servers.push(rest[0]);
    if (word === "search") searches = rest.filter((name) => name !== ".").map((name) => name.replace(/\.$/, ""));
    if (word === "options") options = mergeOptions(options, rest.map(splitOption));
  }
  return { servers, searches, options };
}

function splitOption(text: string): { name: string; value?: string } {
  const colon = text.indexOf(":");
  return colon === -1 ? { name: text } : { name: text.slice(0, colon), value: text.slice(colon + 1) };
}

function mergeOptions(base: readonly string[], extra: readonly { name?: string; value?: string }[]): string[] {
  const merged = new Map(base.map(splitOption).map(({ name, value }) => [name, value]));
  for (const { name, value } of extra) if (name !== undefined) merged.set(name, value);
  return [...merged].map(([name, value]) => (value === undefined || value === "" ? name : `${name}:${value}`));
}

function cutSearches(searches: readonly string[]): string[] {
  const kept = searches.filter((search) => search.length <= 253).slice(0, MAX_SEARCHES);
  while (kept.join(" ").length > MAX_SEARCH_LINE) kept.pop();
  return kept;
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
