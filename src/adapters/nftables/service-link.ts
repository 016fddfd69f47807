import { readFileSync } from "node:fs";
import type { Abortable } from "../../lib/abort.ts";
import { type CommandRunner, firstLine, runCommand } from "./nft-table.ts";
import { NetfilterError } from "./port.ts";

export interface ServiceLinkOptions {
  /** Of the link, at most 15 characters. */
  readonly name: string;
  /** Addresses that the node itself answers. */
  readonly addresses: readonly string[];
  /** All addresses of services are routed to the link: what is no service is rejected on the way. */
  readonly subnet: string;
}

/**
 * Makes a link (a bridge without ports: every kernel with pods has bridges) that holds addresses of services. May be
 * repeated. Rejects with `NetfilterError` if the range is routed elsewhere already.
 */
export async function ensureServiceLink(
  host: CommandRunner,
  { name, addresses, subnet }: ServiceLinkOptions,
  options: Abortable,
): Promise<void> {
  const ip = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await runCommand(host, ["ip", ...args], options);
    if (code === 0 || stderr.includes("File exists")) return stdout;
    throw new NetfilterError("Refused", `ip ${args.join(" ")}: ${firstLine(stderr)}`);
  };
  // Routes to the range or a part of it: rejecting what is no service there would cut somebody off.
  const routes = await ip("-4", "route", "show", "root", subnet);
  const other = [...routes.matchAll(/ dev (\S+)/g)].map((match) => match[1]).find((link) => link !== name);
  if (other !== undefined) {
    const fix = "give another range with --service-cluster-ip-range";
    throw new NetfilterError("Refused", `service range ${subnet} has a route to the link ${other}: ${fix}`);
  }
  await ip("link", "add", "name", name, "type", "bridge");
  await ip("link", "set", name, "up");
  for (const address of addresses) await ip("addr", "replace", `${address}/32`, "dev", name);
  await ip("-4", "route", "replace", subnet, "dev", name);
}

/** False if frames between two ports of a bridge pass netfilter. */
export function hidesBridgedFrames(): boolean {
  try {
    return readFileSync("/proc/sys/net/bridge/bridge-nf-call-iptables", "utf8").trim() !== "1";
  } catch {
    return true;
  }
}
