import { isIpv4 } from "./forwardings.ts";

/** True if an IPv4 address is in a subnet such as `10.43.0.0/16`. */
export function isInSubnet(ip: string, subnet: string): boolean {
  const [base = "", bits = ""] = subnet.split("/");
  if (!isIpv4(ip) || !isIpv4(base)) return false;
  const size = 2 ** (32 - Number(bits));
  return Math.floor(valueOf(ip) / size) === Math.floor(valueOf(base) / size);
}

function valueOf(ip: string): number {
  return ip.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}
