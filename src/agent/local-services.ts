import type { LinuxHost } from "../adapters/host/index.ts";
import type { KubeApi } from "../adapters/kubeapi/index.ts";
import { AddressRange } from "../apiserver/index.ts";
import type { agentOptions, OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import { openServices } from "../services/index.ts";

/** The network of the embedded runtime, with names for what is made in it. */
export interface PodNetwork {
  readonly name: string;
  readonly serviceLink: string;
  readonly bridge: string;
  readonly podCidr: string;
}

export interface LocalServicesDeps {
  readonly host: LinuxHost;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly store: OptionStore<typeof agentOptions>;
}

export interface LocalServices {
  /** Undefined if the node answers no services. */
  readonly addresses?: { readonly apiAddress: string; readonly dnsAddress: string };
  readonly trouble?: string | undefined;
  loops(api: Pick<KubeApi, "list" | "watch">): readonly Loop[];
}

/** Place of the DNS server in the range of services. */
const DNS_INDEX = 10;
const DOMAIN = "cluster.local";

/**
 * Opens services, and makes the DNS server that of new pods unless another one is configured. Never rejects but for an
 * abort: without services pods run, and find each other by address only.
 */
export async function openLocalServices(
  deps: LocalServicesDeps,
  network: PodNetwork,
  abortable: Abortable,
): Promise<LocalServices> {
  const { store, log } = deps;
  const { serviceClusterIPRange, clusterDNS, clusterDomain } = store.current;
  const range = new AddressRange(serviceClusterIPRange);
  const addresses = { apiAddress: range.at(1), dnsAddress: range.at(DNS_INDEX) };
  const domain = clusterDomain === "" ? DOMAIN : clusterDomain;
  try {
    if (!range.has(addresses.dnsAddress)) throw new Error(`service range ${range.cidr} has no room for a DNS server`);
    const options = {
      ...addresses,
      table: network.name,
      link: network.serviceLink,
      bridge: network.bridge,
      podSubnet: network.podCidr,
      serviceSubnet: range.cidr,
      domain,
      resolvConf: () => store.current.resolvConf,
    };
    const { loops, trouble } = await openServices(deps, options, abortable);
    if (trouble !== undefined) log.warn("Running without forwarding to services", { error: trouble });
    if (clusterDNS.length === 0) {
      store.update({ ...store.current, clusterDNS: [addresses.dnsAddress], clusterDomain: domain });
    }
    return { addresses, loops, trouble };
  } catch (error) {
    abortable.signal.throwIfAborted();
    const trouble = messageOf(error);
    log.warn("Failed to open services, running without them", { error: trouble });
    return { trouble, loops: () => [] };
  }
}
