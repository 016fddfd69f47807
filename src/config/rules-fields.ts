import { gitVersion } from "../lib/version.ts";
import { parseImageRef } from "../model/image-ref.ts";
import { isLabelValue, isQualifiedName } from "../model/names.ts";
import { tryParseQuantity } from "../model/quantity.ts";
import type { ModuleLevel, ReservedMemory, Taint, Tracing } from "./kinds-objects.ts";
import { didYouMean, isIp, keyed } from "./rules.ts";

/** The suites up to TLS 1.3 that Go has names for, good ones and bad ones. */
const SUITES = `
  TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305 TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305
  TLS_RSA_WITH_RC4_128_SHA TLS_RSA_WITH_3DES_EDE_CBC_SHA TLS_RSA_WITH_AES_128_CBC_SHA
  TLS_RSA_WITH_AES_256_CBC_SHA TLS_RSA_WITH_AES_128_CBC_SHA256 TLS_RSA_WITH_AES_128_GCM_SHA256
  TLS_RSA_WITH_AES_256_GCM_SHA384 TLS_ECDHE_ECDSA_WITH_RC4_128_SHA TLS_ECDHE_RSA_WITH_RC4_128_SHA
  TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256`;

export function cipherSuites(values: readonly string[]): string | undefined {
  const known = SUITES.trim().split(/\s+/);
  const wrong = values.find((value) => !known.includes(value));
  return wrong === undefined ? undefined : `"${wrong}" is no cipher suite${didYouMean(wrong, known)}`;
}

/** P-256, P-384, P-521, X25519, and the three with ML-KEM. */
const CURVES = [23, 24, 25, 29, 4587, 4588, 4589];

export function curves(values: readonly number[]): string | undefined {
  const wrong = values.find((value) => !CURVES.includes(value));
  if (wrong !== undefined) return `${wrong} is not one of ${CURVES.join(", ")}`;
  return new Set(values).size === values.length ? undefined : "has a number twice";
}

/** Only the metrics of the release before ours can be shown again. */
export function previousRelease(value: string): string | undefined {
  const [major = "1", minor = "0"] = gitVersion.slice(1).split(".");
  const previous = `${major}.${Number(minor) - 1}`;
  return value === "" || value === previous ? undefined : `must be ${previous} or empty`;
}

export function tracingRule(value: Tracing | undefined): string | undefined {
  const rate = value?.samplingRatePerMillion ?? 0;
  if (rate < 0 || rate > 1_000_000) return "samplingRatePerMillion must be between 0 and 1000000";
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(value?.endpoint ?? "")?.[1];
  const isKnown = scheme === undefined || ["dns", "unix", "unix-abstract"].includes(scheme);
  return isKnown ? undefined : `endpoint has the scheme ${scheme}; it must be none, dns, unix or unix-abstract`;
}

export function moduleRule(values: readonly ModuleLevel[]): string | undefined {
  for (const { filePattern, verbosity } of values) {
    if (filePattern === "" || /[=,]/.test(filePattern))
      return `the pattern "${filePattern}" must have no = or , and not be empty`;
    if (verbosity < 0) return "must be PATTERN=N pairs; N must be at least 0";
  }
  return undefined;
}

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

export function taintRule(values: readonly Taint[]): string | undefined {
  const seen = new Set<string>();
  for (const { key, value = "", effect, timeAdded } of values) {
    if (!isQualifiedName(key)) return `"${key}" is no label key`;
    if (!isLabelValue(value)) return `${key}: "${value}" is no label value`;
    if (!EFFECTS.includes(effect)) return `${key}: "${effect}" is not one of ${EFFECTS.join(", ")}`;
    if (timeAdded !== undefined) return `${key}: timeAdded is set by the cluster; leave it out`;
    if (seen.has(`${key}:${effect}`)) return `${key}:${effect} is given twice`;
    seen.add(`${key}:${effect}`);
  }
  return undefined;
}

/** Keys in the namespace of Kubernetes that a node may set on itself. */
const OWN_LABELS = new Set([
  ...["kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch"],
  ...["beta.kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type"],
  ...["node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"],
  ...["failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"],
]);

export function nodeLabels(values: Readonly<Record<string, string>>): string | undefined {
  for (const [key, value] of Object.entries(values)) {
    if (!isQualifiedName(key)) return `"${key}" is no label key`;
    if (!isLabelValue(value)) return `${key}: "${value}" is no label value`;
    const prefix = key.includes("/") ? key.slice(0, key.indexOf("/")) : "";
    const isReserved = /(^|\.)(kubernetes|k8s)\.io$/.test(prefix);
    const isAllowed = OWN_LABELS.has(key) || /(^|\.)(kubelet|node)\.kubernetes\.io$/.test(prefix);
    if (isReserved && !isAllowed) return `${key} may not be set by a node; use a prefix such as node.kubernetes.io`;
  }
  return undefined;
}

const isBoolean = (value: string): string | undefined =>
  /^(1|t|T|true|True|TRUE|0|f|F|false|False|FALSE)$/.test(value) ? undefined : "must be true or false";

/** CPU policy options by the gate that they need; undefined for stable ones. */
export const CPU_OPTION_GATES: Readonly<Record<string, string | undefined>> = {
  "full-pcpus-only": undefined,
  "strict-cpu-reservation": undefined,
  "prefer-align-cpus-by-uncorecache": undefined,
  "distribute-cpus-across-numa": "CPUManagerPolicyBetaOptions",
  "align-by-socket": "CPUManagerPolicyAlphaOptions",
  "distribute-cpus-across-cores": "CPUManagerPolicyAlphaOptions",
};

export const cpuOptions = keyed(Object.keys(CPU_OPTION_GATES), isBoolean);

/** The policy none ignores its options, whatever they are, as in Kubernetes. */
export function topologyOptions(values: Readonly<Record<string, string>>): string | undefined {
  const names = ["prefer-closest-numa-nodes", "max-allowable-numa-nodes"];
  for (const [key, value] of Object.entries(values)) {
    const isCount = key === "max-allowable-numa-nodes";
    const problem = isCount
      ? /^\d{1,9}$/.test(value) && Number(value) >= 8
        ? undefined
        : `${key}: "${value}" must be a whole number of at least 8`
      : keyed(names, isBoolean)({ [key]: value });
    if (problem !== undefined) return problem;
  }
  return undefined;
}

export const qosShares = keyed(["memory"], (value) =>
  /^\d{1,3}%$/.test(value) && Number.parseInt(value, 10) <= 100 ? undefined : "must be a percentage from 0% to 100%",
);

/** A subnet, or one of each address family with a comma between them. */
export function podSubnets(value: string): string | undefined {
  const wrong = value === "" ? undefined : value.split(",").find((subnet) => !isSubnet(subnet));
  return wrong === undefined ? undefined : `"${wrong}" must be a subnet like 10.88.0.0/24 or fd00:88::/64`;
}

function isSubnet(text: string): boolean {
  const [address = "", prefix = "", ...rest] = text.split("/");
  const bits = address.includes(":") ? 128 : 32;
  return isIp(address) && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits && rest.length === 0;
}

const ENFORCEABLE = [
  ...["none", "pods", "system-reserved", "system-reserved-compressible"],
  ...["kube-reserved", "kube-reserved-compressible"],
];

export function enforcements(values: readonly string[]): string | undefined {
  const wrong = values.find((value) => !ENFORCEABLE.includes(value));
  if (wrong !== undefined) return `"${wrong}" is not one of ${ENFORCEABLE.join(", ")}${didYouMean(wrong, ENFORCEABLE)}`;
  if (new Set(values).size !== values.length) return "has a value twice";
  if (values.includes("none") && values.length > 1) return "none must stand alone";
  for (const group of ["system-reserved", "kube-reserved"]) {
    if (values.includes(group) && values.includes(`${group}-compressible`)) {
      return `${group} and ${group}-compressible exclude each other`;
    }
  }
  return undefined;
}

export function memoryRule(values: readonly ReservedMemory[]): string | undefined {
  const seen = new Set<string>();
  for (const { numaNode, limits } of values) {
    if (numaNode < 0) return `numaNode ${numaNode} must be at least 0`;
    if (Object.keys(limits).length === 0) return `node ${numaNode} has no limits`;
    for (const [name, amount] of Object.entries(limits)) {
      if (!/^(memory|hugepages-.+)$/.test(name)) return `node ${numaNode}: ${name} is not memory or hugepages-SIZE`;
      if ((tryParseQuantity(amount)?.nano ?? 0n) <= 0n) return `node ${numaNode}: ${name} must be more than 0`;
      if (seen.has(`${numaNode}/${name}`)) return `node ${numaNode}: ${name} is given twice`;
      seen.add(`${numaNode}/${name}`);
    }
  }
  return undefined;
}

export function idRange(value: number): string | undefined {
  if (value >= 65536 && value % 65536 === 0 && value <= 4294967295) return undefined;
  return "must be a multiple of 65536, and at most 4294967295";
}

/** An image without tag or digest; `*` only as a last part of its own. */
export function imagePattern(value: string): string | undefined {
  if (value === "" || value.trim() !== value) return "must have no space around it";
  const isWildcard = value.endsWith("/*");
  const name = isWildcard ? value.slice(0, -1) : value;
  if (name.includes("*")) return "may have * only as its last part, /*";
  if (isWildcard) return name === "/" ? "must name a registry before /*" : undefined;
  try {
    const { tag, digest } = parseImageRef(name);
    return tag === "" && digest === "" ? undefined : "must have no tag and no digest";
  } catch {
    return "must be an image name without tag and digest, or end in /*";
  }
}

export function restartPeriod(value: number | undefined): string | undefined {
  return value === undefined || (value >= 1000 && value <= 300_000) ? undefined : "must be between 1s and 5m";
}

/** `http://host:port`, or a bare `host:port` as v1.3 took it. */
export function apiServer(value: string): string | undefined {
  const url = /^[a-z]+:\/\//i.test(value) ? value : `http://${value}`;
  return URL.canParse(url) && /^https?:/.test(url) ? undefined : "must be the URL of an API server";
}

/** `true`, `false`, `raw`, or a version to report that has the same core as ours. */
export function versionWord(value: string): string | undefined {
  if (/^(true|false|raw|1|0|t|f|T|F|True|False|TRUE|FALSE)$/.test(value)) return undefined;
  const core = gitVersion.replace(/[-+].*$/, "");
  return value === core || value.startsWith(`${core}-`) || value.startsWith(`${core}+`)
    ? undefined
    : `must be true, false, raw or a version that begins with ${core}`;
}

/** A range of IPv4 addresses with room for services. */
export function ipv4Range(value: string): string | undefined {
  const match = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(value);
  const bits = Number(match?.[2] ?? 0);
  if (match !== null && isIp(match[1] ?? "") && bits >= 12 && bits <= 28) return undefined;
  return "must be a range of IPv4 addresses from /12 to /28, such as 10.43.0.0/16";
}

/** `30000-32767`. */
export function portRange(value: string): string | undefined {
  const [, first = "", last = ""] = /^(\d{1,5})-(\d{1,5})$/.exec(value) ?? [];
  if (first !== "" && Number(first) >= 1 && Number(first) <= Number(last) && Number(last) <= 65_535) return undefined;
  return "must be a range of ports such as 30000-32767";
}
