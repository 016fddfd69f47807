/** Small rules for `validate`: each returns what is wrong, or undefined. */
export function between(low: number, high: number): (value: number) => string | undefined {
  return (value) => (value >= low && value <= high ? undefined : `must be between ${low} and ${high}`);
}

export function atLeast(low: number): (value: number | undefined) => string | undefined {
  return (value) => (value === undefined || value >= low ? undefined : `must be at least ${low}`);
}

export function positive(value: number): string | undefined {
  return value > 0 ? undefined : "must be more than 0";
}

export function filled(value: string): string | undefined {
  return value === "" ? "must not be empty" : undefined;
}

/** An absolute path without `..`, a doubled or a trailing slash. */
export function absolutePath(value: string): string | undefined {
  if (!value.startsWith("/")) return "must be an absolute path";
  if (/\/(\.\.?)(\/|$)|\/\//.test(value) || (value.length > 1 && value.endsWith("/"))) {
    return "must be a plain path: no `.`, `..`, `//` or `/` at the end";
  }
  // biome-ignore lint: control characters are what is looked for
  return /[^\x20-\x7e]/.test(value) ? "must be ASCII" : undefined;
}

/** A unix socket that gRPC can dial: `unix:///path`, or the bare path. */
export function unixEndpoint(value: string): string | undefined {
  if (value.startsWith("unix:///") || value.startsWith("/")) return undefined;
  return "must be the path of a unix socket such as unix:///run/containerd/containerd.sock";
}

/** An IPv4 (leading zeros tolerated) or IPv6 address. */
export function isIp(value: string): boolean {
  const v4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(value);
  if (v4 !== null) return v4.slice(1).every((part) => Number(part) <= 255);
  return value.includes(":") && /^[0-9a-fA-F:.]+$/.test(value) && URL.canParse(`http://[${value}]/`);
}

/** Empty is accepted, as in Kubernetes; anything else must be an address. */
export function ip(value: string): string | undefined {
  return value === "" || isIp(value) ? undefined : "must be an IP address";
}

export function ips(values: readonly string[]): string | undefined {
  const wrong = values.find((value) => !isIp(value));
  return wrong === undefined ? undefined : `"${wrong}" is no IP address`;
}

/** A DNS name in small letters, at most 253 characters. */
export function dnsName(value: string): string | undefined {
  const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
  if (value === "") return undefined;
  if (value.length <= 253 && value.split(".").every((part) => label.test(part))) return undefined;
  return "must be a DNS name of small letters, digits, `-` and `.`";
}

/** `pattern=N` pairs between commas. */
export function moduleLevels(value: string): string | undefined {
  if (value === "" || value.split(",").every((pair) => /^[^=,]+=\d+$/.test(pair))) return undefined;
  return "must be PATTERN=N pairs between commas";
}

/** What can be fetched: an absolute http or https URL. */
export function httpUrl(value: string): string | undefined {
  if (value === "") return undefined;
  if (!URL.canParse(value)) return "must be a URL";
  return /^https?:$/.test(new URL(value).protocol) ? undefined : "must be an http or https URL";
}
