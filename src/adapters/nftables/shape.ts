import { createHash } from "node:crypto";
import type { Forwarding } from "./port.ts";

/** What the rules of a table are made for. */
export interface TableOptions {
  /** Of the table, in the family `ip`. */
  readonly name: string;
  /** Addresses of services. */
  readonly serviceSubnet: string;
  readonly podSubnet: string;
  /** The link that the pods are on. */
  readonly bridge: string;
  /**
   * True if frames between two ports of the bridge do not pass netfilter (`bridge-nf-call-iptables` is off): answers
   * would miss the translation, so connections from pods to pods come from the bridge's address.
   */
  readonly hidesPods: boolean;
}

export const ADDRESSES = "service-ips";
export const NODE_PORTS = "node-ports";
export const HAIRPIN = "hairpin";

/** Maps and sets of the table with their definitions. */
export const COLLECTIONS: Readonly<Record<string, string>> = {
  [ADDRESSES]: "map {N} { type ipv4_addr . inet_proto . inet_service : verdict; }",
  [NODE_PORTS]: "map {N} { type inet_proto . inet_service : verdict; }",
  [HAIRPIN]: "set {N} { type ipv4_addr . ipv4_addr; }",
};

/** A chain that packets enter from a hook, or from another chain. */
export interface BaseChain {
  readonly hook?: string;
  readonly rules: readonly string[];
}

/**
 * The chains that are always there. Translation comes before that of others (iptables: -100 and 100), whose first match
 * would win. What is left with an address of the service range after translation belongs to no service with endpoints.
 */
export function baseChains(options: TableOptions): Readonly<Record<string, BaseChain>> {
  const { serviceSubnet, podSubnet, bridge, hidesPods } = options;
  const through = `ip saddr ${podSubnet} ip daddr ${podSubnet} ct status dnat masquerade`;
  return {
    services: {
      rules: [
        `ip daddr . meta l4proto . th dport vmap @${ADDRESSES}`,
        `fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @${NODE_PORTS}`,
      ],
    },
    "reject-services": { rules: ["meta l4proto tcp reject with tcp reset", "reject with icmp type port-unreachable"] },
    prerouting: { hook: "type nat hook prerouting priority -110", rules: ["jump services"] },
    output: { hook: "type nat hook output priority -110", rules: ["jump services"] },
    postrouting: {
      hook: "type nat hook postrouting priority 90",
      rules: [
        // A pod that reaches itself through its service must not see its own address as the client's.
        `ip saddr . ip daddr @${HAIRPIN} masquerade`,
        // The node's own connections come from the bridge's address, whatever address was chosen for the way out.
        `oifname "${bridge}" fib saddr type local ct status dnat masquerade`,
        ...(hidesPods ? [through] : []),
      ],
    },
    "filter-forward": {
      hook: "type filter hook forward priority -10",
      rules: [`ip daddr ${serviceSubnet} goto reject-services`],
    },
    "filter-output": {
      hook: "type filter hook output priority -10",
      rules: [`ip daddr ${serviceSubnet} fib daddr type != local goto reject-services`],
    },
    // Addresses of the node's own services are for its pods and itself, not for neighbours that route to them.
    "filter-input": {
      hook: "type filter hook input priority -10",
      rules: [`ip daddr ${serviceSubnet} iifname != { "lo", "${bridge}" } drop`],
    },
  };
}

/** One element of a map or set; the value of a set's is empty. */
export interface Element {
  readonly collection: string;
  readonly key: string;
  readonly value: string;
}

/** What one forwarding is made of. Chains come in an order in which each refers only to earlier ones. */
export interface ForwardingParts {
  readonly chains: ReadonlyMap<string, readonly string[]>;
  /** Sets by name, with the timeout of their elements in seconds. */
  readonly sets: ReadonlyMap<string, number>;
  /** Some of them twice if several targets have one address. */
  readonly elements: readonly Element[];
}

export const NO_PARTS: ForwardingParts = { chains: new Map(), sets: new Map(), elements: [] };

/** The chains, sets and elements of a forwarding; none without targets. Pure. */
export function partsOf(forwarding: Forwarding): ForwardingParts {
  const { key, protocol, addresses, port, nodePort, targets, affinitySeconds } = forwarding;
  if (targets.length === 0) return NO_PARTS;
  const id = digest(key);
  const chain = `svc-${id}`;
  const chains = new Map<string, readonly string[]>();
  const sets = new Map<string, number>();
  if (affinitySeconds === undefined) {
    const choices = targets.map((target, index) => `${index} : ${target.ip} . ${target.port}`);
    const choice = `numgen random mod ${targets.length} map { ${choices.join(", ")} }`;
    chains.set(chain, [`meta l4proto ${protocol} dnat to ${choice}`]);
  } else {
    const ids = targets.map((target) => `${id}-${digest(`${target.ip}:${target.port}:${affinitySeconds}`)}`);
    for (const [index, target] of targets.entries()) {
      sets.set(`aff-${ids[index]}`, affinitySeconds);
      chains.set(`ep-${ids[index]}`, [
        `update @aff-${ids[index]} { ip saddr timeout ${affinitySeconds}s }`,
        `meta l4proto ${protocol} dnat to ${target.ip}:${target.port}`,
      ]);
    }
    const choices = ids.map((one, index) => `${index} : goto ep-${one}`);
    chains.set(chain, [
      ...ids.map((one) => `ip saddr @aff-${one} goto ep-${one}`),
      `numgen random mod ${ids.length} vmap { ${choices.join(", ")} }`,
    ]);
  }
  const value = `goto ${chain}`;
  const elements = [
    ...addresses.map((ip) => ({ collection: ADDRESSES, key: `${ip} . ${protocol} . ${port}`, value })),
    ...(nodePort === undefined ? [] : [{ collection: NODE_PORTS, key: `${protocol} . ${nodePort}`, value }]),
    ...targets.map(({ ip }) => ({ collection: HAIRPIN, key: `${ip} . ${ip}`, value: "" })),
  ];
  return { chains, sets, elements };
}

/** Names of the kernel are short, and those of services are long. */
function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
