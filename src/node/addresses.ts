import type { NodeAddress } from "../model/generated/types.ts";

/** The facts that the node's addresses are chosen from. */
export interface AddressFacts {
  readonly nodeName: string;
  /** `--node-ip`: none, one, or one of each family; `0.0.0.0` and `::` only prefer a family. */
  readonly nodeIp: string;
  readonly isExternalCloud: boolean;
  /** DNS addresses of the node's name, in their order. */
  readonly resolved: readonly string[];
  /** The machine's own addresses, the preferred one first. */
  readonly own: readonly string[];
}

/** Returns InternalIP and Hostname of the node. Throws if `--node-ip` is invalid or the node has no address. Pure. */
export function nodeAddresses(facts: AddressFacts): readonly NodeAddress[] {
  const hostname = { type: "Hostname", address: facts.nodeName };
  const given = facts.nodeIp
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  for (const ip of given) checkAddress(ip, facts);
  const wanted = given.filter((ip) => !isUnspecified(ip));
  const internal = (address: string): NodeAddress => ({ type: "InternalIP", address });
  if (facts.isExternalCloud && given.length === 0) return [hostname];
  if (wanted.length > 0) return [...wanted.map(internal), hostname];
  const prefersV6 = given.some((ip) => ip === "::");
  const found = isIp(facts.nodeName) ? facts.nodeName : pick(facts, prefersV6);
  if (found === undefined) throw new Error(`can't get ip address of node ${facts.nodeName}. error: no address found`);
  return [internal(found), hostname];
}

function pick({ resolved, own }: AddressFacts, prefersV6: boolean): string | undefined {
  const valid = resolved.filter((ip) => own.includes(ip));
  const best = (all: readonly string[]): string | undefined =>
    all.find((ip) => ip.includes(":") === prefersV6) ?? all[0];
  return best(valid) ?? best(own);
}

function checkAddress(ip: string, { own }: AddressFacts): void {
  const reject = (why: string): never => {
    throw new Error(`node IP: ${JSON.stringify(ip)} ${why}`);
  };
  if (!isIp(ip)) reject("is not an IP address");
  if (isUnspecified(ip)) return;
  if (ip.startsWith("127.") || ip === "::1") reject("can't be a loopback address");
  if (/^(22[4-9]|23\d)\./.test(ip) || /^ff/i.test(ip)) reject("can't be a multicast address");
  if (ip.startsWith("169.254.") || /^fe[89ab]/i.test(ip)) reject("can't be a link-local unicast address");
  if (!own.includes(ip)) reject("not found in the host's network interfaces");
}

function isUnspecified(ip: string): boolean {
  return ip === "0.0.0.0" || ip === "::";
}

function isIp(text: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(text) || (text.includes(":") && /^[0-9a-f:.]+$/i.test(text));
}
