import { EmbeddedError } from "./embedded-error.ts";

/** An IPv4 network as numbers. */
export interface Ipv4Network {
  readonly base: number;
  readonly prefix: number;
}

/** Reads `10.88.3.0/24`; undefined for anything that is no IPv4 network. */
export function parseCidr(text: string): Ipv4Network | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (match === null) return undefined;
  const [a = 0, b = 0, c = 0, d = 0, prefix = 0] = match.slice(1).map(Number);
  if (a > 255 || b > 255 || c > 255 || d > 255 || prefix > 32) return undefined;
  const address = ((a * 256 + b) * 256 + c) * 256 + d;
  return { base: address - (address % 2 ** (32 - prefix)), prefix };
}

export function formatCidr({ base, prefix }: Ipv4Network): string {
  const bytes = [24, 16, 8, 0].map((shift) => Math.floor(base / 2 ** shift) % 256);
  return `${bytes.join(".")}/${prefix}`;
}

/** Networks of the main routing table (/proc/net/route) without the default route, which overlaps everything. */
export function parseRoutes(table: string): Ipv4Network[] {
  const routes: Ipv4Network[] = [];
  for (const line of table.split("\n").slice(1)) {
    const columns = line.split("\t");
    const [, destination = "", , , , , , mask = ""] = columns;
    if (destination === "" || mask === "") continue;
    const prefix = bits(networkOrder(mask));
    if (prefix > 0) routes.push({ base: networkOrder(destination), prefix });
  }
  return routes;
}

export function overlaps(a: Ipv4Network, b: Ipv4Network): boolean {
  const size = 2 ** (32 - Math.min(a.prefix, b.prefix));
  return Math.floor(a.base / size) === Math.floor(b.base / size);
}

/**
 * A /24 that no route touches: below 10.88.0.0/16 first, then in ranges that are seldom used. The seed (from the state
 * directory) spreads the choice, so that two state directories rarely ask for the same one.
 */
export function chooseSubnet(routes: readonly Ipv4Network[], seed: number): Ipv4Network {
  for (const range of ["10.88.0.0/16", "10.188.0.0/16", "172.30.0.0/16", "192.168.0.0/16"]) {
    const base = parseCidr(range)?.base ?? 0;
    for (let i = 0; i < 256; i++) {
      const candidate = { base: base + ((seed + i) % 256) * 256, prefix: 24 };
      if (!routes.some((route) => overlaps(route, candidate))) return candidate;
    }
  }
  throw new EmbeddedError("NoSubnet", "no free private /24 for the pods: give one with --pod-cidr");
}

/** /proc/net/route has each address as eight hex digits in the machine's (little-endian) byte order. */
function networkOrder(hex: string): number {
  const bytes = Buffer.from(hex, "hex");
  return bytes.byteLength === 4 ? bytes.readUInt32LE(0) : 0;
}

function bits(mask: number): number {
  let count = 0;
  for (let rest = mask; rest > 0; rest = Math.floor(rest / 2)) count += rest % 2;
  return count;
}
