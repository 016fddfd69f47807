import { editDistance, nearest } from "../lib/nearest.ts";
import { parseDuration } from "../model/duration.ts";
import { tryParseQuantity } from "../model/quantity.ts";

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

/** What can be fetched: an absolute http or https URL. */
export function httpUrl(value: string): string | undefined {
  if (value === "") return undefined;
  if (!URL.canParse(value)) return "must be a URL";
  return /^https?:$/.test(new URL(value).protocol) ? undefined : "must be an http or https URL";
}

/** Each item of a list must pass; names the one that does not. */
export function each(rule: (value: string) => string | undefined): (values: readonly string[]) => string | undefined {
  return (values) => {
    for (const value of values) {
      const problem = rule(value);
      if (problem !== undefined) return `"${value}" ${problem}`;
    }
    return undefined;
  };
}

/** Every key one of these; the value judged by the rule. */
export function keyed(
  keys: readonly string[],
  rule: (value: string) => string | undefined,
): (values: Readonly<Record<string, string>>) => string | undefined {
  return (values) => {
    for (const [key, value] of Object.entries(values)) {
      if (!keys.includes(key)) return `${key} is not one of ${keys.join(", ")}${didYouMean(key, keys)}`;
      const problem = rule(value);
      if (problem !== undefined) return `${key}: "${value}" ${problem}`;
    }
    return undefined;
  };
}

/** `; did you mean x?`, or nothing. */
export function didYouMean(word: string, known: Iterable<string>, prefix = ""): string {
  const lower = word.toLowerCase();
  const distance = (candidate: string): number => editDistance(lower, candidate.toLowerCase(), 100);
  const [near] = nearest(word, known, 20).sort((a, b) => distance(a) - distance(b));
  return near === undefined ? "" : `; did you mean ${prefix}${near}?`;
}

/** A quantity that is not negative. */
export function amount(value: string): string | undefined {
  const parsed = tryParseQuantity(value);
  if (parsed === undefined) return "must be a quantity such as 500m, 1Gi or 10Mi";
  return parsed.nano < 0n ? "must not be negative" : undefined;
}

/** `N%` as a number; undefined for anything else. */
function percent(value: string): number | undefined {
  const match = /^(\d+(?:\.\d*)?|\.\d+)%$/.exec(value);
  return match === null ? undefined : Number(match[1]);
}

/** The signals of eviction thresholds that a user may name. */
export const EVICTION_SIGNALS = [
  "memory.available",
  "allocatableMemory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "containerfs.available",
  "containerfs.inodesFree",
  "pid.available",
] as const;

/** Thresholds: a quantity above 0, or 0 to 100 percent. */
export const thresholds = keyed(EVICTION_SIGNALS, (value) => {
  const share = percent(value);
  if (share !== undefined) return share <= 100 ? undefined : "must be at most 100%";
  if (value.endsWith("%")) return "must be a percentage from 0% to 100%";
  const problem = amount(value);
  if (problem !== undefined) return problem;
  return tryParseQuantity(value)?.nano === 0n ? "must be more than 0" : undefined;
});

/** What an eviction frees beyond the threshold: a quantity, or a percentage above 0. */
export const reclaims = keyed(EVICTION_SIGNALS, (value) => {
  if (!value.endsWith("%")) return amount(value);
  return (percent(value) ?? 0) > 0 ? undefined : "must be a percentage above 0";
});

/** Spans of at least 0 by signal. */
export const graces = keyed(EVICTION_SIGNALS, (value) => {
  try {
    return parseDuration(value) < 0 ? "must not be negative" : undefined;
  } catch {
    return "must be a duration such as 20s, 1m30s or 1.5h";
  }
});

/** Reservations for what is no pod. */
export const reservations = keyed(["cpu", "memory", "ephemeral-storage", "pid"], amount);

/** `0-3,8,10-11`. */
export function cpuSet(value: string): string | undefined {
  if (value === "") return undefined;
  const isFine = value.split(",").every((part) => {
    const match = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(part);
    return match !== null && Number(match[2] ?? match[1]) >= Number(match[1]);
  });
  return isFine ? undefined : "must be a list of CPUs such as 0-3,8";
}

/** A sysctl's name, or a pattern that ends in `*`. */
export function sysctlPattern(value: string): string | undefined {
  const plain = value.replaceAll("/", ".");
  return /^[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\.[a-z0-9*]([-_a-z0-9]*[a-z0-9*])?)*(\.?\*)?$/.test(plain) &&
    !/\*./.test(plain)
    ? undefined
    : "must be a sysctl's name, or a pattern that ends in *";
}

/** A duration of at least `low` milliseconds. */
export function spanAtLeast(low: number, word: string): (value: number) => string | undefined {
  return (value) => (value >= low ? undefined : `must be at least ${word}`);
}

/** 0 (off), or at least one second. */
export function zeroOrSeconds(value: number): string | undefined {
  return value === 0 || value >= 1000 ? undefined : "must be 0 or at least 1s";
}
