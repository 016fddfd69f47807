/**
 * The addresses of a pod as its status shows them: the first one of the node's primary family, then the first one of
 * the other family, whatever order the runtime reports them in. `hostIps` are the node's addresses, primary first.
 */
export function orderPodIps(ips: readonly string[], hostIps: readonly string[]): readonly string[] {
  const isPrimarySix = isIPv6(hostIps[0] ?? "");
  const primary = ips.find((ip) => isIPv6(ip) === isPrimarySix);
  const secondary = ips.find((ip) => isIPv6(ip) !== isPrimarySix);
  return [primary, secondary].filter((ip) => ip !== undefined);
}

function isIPv6(ip: string): boolean {
  return ip.includes(":");
}
