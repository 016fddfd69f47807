import type { KubeApi } from "../adapters/kubeapi/index.ts";
import { DnsListener } from "../adapters/net/dns-listener.ts";
import { DnsUpstream } from "../adapters/net/dns-upstream.ts";
import {
  type CommandRunner,
  Conntrack,
  ensureServiceLink,
  hidesBridgedFrames,
  NetfilterError,
  NftTable,
} from "../adapters/nftables/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import { type Loop, untilAborted } from "../lib/loop.ts";
import { DataPath } from "./data-path.ts";
import { DnsResolver } from "./dns/resolver.ts";
import { Zone } from "./dns/zone.ts";
import { ServiceBook } from "./service-book.ts";
import { isInSubnet } from "./subnet.ts";

export interface ServicesDeps {
  readonly host: CommandRunner;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
}

export interface ServicesOptions {
  /** Names of the table and the link that belong to one state directory. */
  readonly table: string;
  readonly link: string;
  readonly bridge: string;
  readonly podSubnet: string;
  readonly serviceSubnet: string;
  /** Of the service `kubernetes`, and of the DNS server. */
  readonly apiAddress: string;
  readonly dnsAddress: string;
  readonly domain: string;
  /** The node's resolver file. */
  readonly resolvConf: () => string;
}

/** Services on this node, ready for an API. */
export interface OpenedServices {
  /** Why connections to services are not forwarded here; names are answered all the same. */
  readonly trouble?: string;
  /** Forwards connections and answers names by what the API has. */
  loops(api: Pick<KubeApi, "list" | "watch">): readonly Loop[];
}

const DNS_PORT = 53;
/** Messages that come before the API is there wait for it; then they get no answer, and clients ask again. */
type Respond = DnsResolver["respond"];

/** Makes the addresses of the node's own services and binds the DNS port. Rejects with what the system reports. */
export async function openServices(
  deps: ServicesDeps,
  options: ServicesOptions,
  abortable: Abortable,
): Promise<OpenedServices> {
  const { host, clock, log, random } = deps;
  const { serviceSubnet, podSubnet, bridge, apiAddress, dnsAddress, domain } = options;
  const own = [apiAddress, dnsAddress];
  await ensureServiceLink(host, { name: options.link, addresses: own, subnet: serviceSubnet }, abortable);
  let respond: Respond = async () => undefined;
  const listener = await DnsListener.open({ host: dnsAddress, port: DNS_PORT }, (message, how) =>
    respond(message, how),
  );
  const shape = { name: options.table, serviceSubnet, podSubnet, bridge, hidesPods: hidesBridgedFrames() };
  const trouble = await new NftTable(host, shape).isIntact(abortable).then(
    () => undefined,
    (error: unknown) => {
      if (!(error instanceof NetfilterError)) throw error;
      return `no forwarding to services: ${error.message} (install nftables)`;
    },
  );
  return {
    ...(trouble !== undefined && { trouble }),
    loops: (api) => {
      const book = new ServiceBook({ api, clock, log });
      const isOwn = (ip: string): boolean => isInSubnet(ip, serviceSubnet) || isInSubnet(ip, podSubnet);
      const zone = new Zone(book, { domain, address: dnsAddress, isOwn });
      const isExcluded = (ip: string): boolean => isInSubnet(ip, serviceSubnet);
      const upstream = new DnsUpstream({ clock }, { file: options.resolvConf, isExcluded });
      const resolver = new DnsResolver({ zone, upstream, random });
      // An answer from half a list would be a wrong one.
      respond = async (message, how) => {
        if (!book.hasSynced) return undefined;
        try {
          return await resolver.respond(message, how);
        } catch (error) {
          if (!how.signal.aborted) log.error("Failed to answer a DNS query", error);
          return undefined;
        }
      };
      const table = new NftTable(host, shape);
      const dataPath = new DataPath({ book, table, connections: new Conntrack(host), clock, log }, own);
      const forward = (signal: AbortSignal): Promise<void> => dataPath.run(signal);
      return [
        { name: "services", run: (signal) => book.run(signal) },
        ...(trouble === undefined ? [{ name: "forwardings of services", run: forward }] : []),
        { name: "DNS of services", run: (signal) => untilAborted(signal).then(() => listener.close()) },
      ];
    },
  };
}
