import { accessSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import { readIfExists, writeAtomic } from "../../lib/atomic-file.ts";
import { EmbeddedError } from "./embedded-error.ts";
import type { EmbeddedDeps } from "./host.ts";
import type { Layout } from "./layout.ts";

/** What the pod network is made of; chosen at the first start. */
export interface PodNetwork {
  readonly bridge: string;
  readonly podCidr: string;
}

const PLUGINS = ["bridge", "host-local", "loopback", "portmap"];

/** The directory that has all the CNI plug-ins we use (Debian's first). */
export function findCniPlugins(): string {
  for (const directory of ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"]) {
    try {
      for (const plugin of PLUGINS) accessSync(join(directory, plugin));
      return directory;
    } catch {
      // Next one.
    }
  }
  throw new EmbeddedError("MissingProgram", "the CNI plug-ins are missing: install containernetworking-plugins");
}

/**
 * The CNI network. `ipMasq` is off: one static rule of ours for the whole subnet replaces two rules and a chain for
 * each pod (docs/decisions/002-bridge-masquerade.md).
 */
export function renderConflist(layout: Layout, network: PodNetwork): string {
  const conflist = {
    cniVersion: "1.0.0",
    name: layout.name,
    plugins: [
      {
        type: "bridge",
        bridge: network.bridge,
        isGateway: true,
        isDefaultGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: { type: "host-local", dataDir: layout.ipamDir, ranges: [[{ subnet: network.podCidr }]] },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  };
  return `${JSON.stringify(conflist, undefined, 2)}\n`;
}

/** One iptables rule: the table, the chain and the rest of its words. */
export interface FilterRule {
  readonly table: string;
  readonly chain: string;
  readonly words: readonly string[];
}

/**
 * The rules we keep: pods reach the outside under the machine's address, and, only where the FORWARD chain drops by
 * default (Docker sets that), their traffic and what answers it or was mapped to them may pass. Pure.
 */
export function networkRules(layout: Layout, network: PodNetwork, forwardPolicy: string): FilterRule[] {
  const comment = ["-m", "comment", "--comment", layout.name];
  const masquerade: FilterRule = {
    table: "nat",
    chain: "POSTROUTING",
    words: ["-s", network.podCidr, "!", "-o", network.bridge, ...comment, "-j", "MASQUERADE"],
  };
  if (forwardPolicy === "ACCEPT") return [masquerade];
  const accept = (...match: string[]): FilterRule => {
    return { table: "filter", chain: "FORWARD", words: [...match, ...comment, "-j", "ACCEPT"] };
  };
  return [
    masquerade,
    accept("-i", network.bridge),
    accept("-o", network.bridge, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"),
    accept("-o", network.bridge, "-m", "conntrack", "--ctstate", "DNAT"),
  ];
}

/** Writes the CNI configuration and makes sure of the rules. May be repeated; costs a few milliseconds when all is there. */
export async function ensureNetwork(
  deps: EmbeddedDeps,
  { layout, network }: { layout: Layout; network: PodNetwork },
  { signal }: Abortable,
): Promise<void> {
  mkdirSync(layout.cniConfDir, { recursive: true });
  const file = join(layout.cniConfDir, "10-kubelet-ts.conflist");
  const conflist = renderConflist(layout, network);
  if ((await readIfExists(file)) !== conflist) await writeAtomic(file, conflist, { mode: 0o644 });

  const iptables = async (...args: string[]): Promise<{ code: number | undefined; stdout: string }> => {
    const result = await deps.host.exec("iptables", ["-w", "10", ...args], { signal });
    if (result.code === 0 || args.includes("-C")) return result;
    throw new EmbeddedError("NetworkSetup", `iptables ${args.join(" ")} failed: ${result.stderr.trim()}`);
  };
  const policy = /^-P FORWARD (\w+)/m.exec((await iptables("-S", "FORWARD")).stdout)?.[1] ?? "ACCEPT";
  for (const { table, chain, words } of networkRules(layout, network, policy)) {
    if ((await iptables("-t", table, "-C", chain, ...words)).code === 0) continue;
    // First in FORWARD, where a rule that drops may stand; last in POSTROUTING, behind more particular ones.
    await iptables("-t", table, table === "filter" ? "-I" : "-A", chain, ...words);
  }
}

const IP_FORWARD = "/proc/sys/net/ipv4/ip_forward";

/** How IP forwarding stood when we needed it: what `restoreForwarding` decides on. */
export interface ForwardingNote {
  readonly wasOn: boolean;
  /** Interfaces that were there at that moment. */
  readonly links: readonly string[];
}

/** Turns IPv4 forwarding on. The answer is remembered by the first caller. */
export function enableForwarding(): ForwardingNote {
  const wasOn = readFileSync(IP_FORWARD, "utf8").trim() !== "0";
  const links = readdirSync("/sys/class/net");
  if (!wasOn) writeFileSync(IP_FORWARD, "1");
  return { wasOn, links };
}

/**
 * Turns forwarding off again if we turned it on, unless an interface is there that was not there then: somebody who
 * came later (Docker, another runtime, a VPN) may rely on it. True when it was turned off.
 */
export function restoreForwarding(note: ForwardingNote): boolean {
  if (note.wasOn || readFileSync(IP_FORWARD, "utf8").trim() === "0") return false;
  const known = new Set(note.links);
  if (readdirSync("/sys/class/net").some((link) => !known.has(link))) return false;
  writeFileSync(IP_FORWARD, "0");
  return true;
}
