import type { Secret } from "./generated/types.ts";
import { parseImageRef } from "./image-ref.ts";

/** Credentials for a registry. */
export interface RegistryAuth {
  readonly username?: string;
  readonly password?: string;
  readonly identityToken?: string;
  readonly registryToken?: string;
}

const MODERN = "kubernetes.io/dockerconfigjson";
const OLD = "kubernetes.io/dockercfg";

/** One entry of a Docker configuration: a registry, or a path in one, and its credentials. */
export interface RegistryEntry {
  /** Host, optional port and path prefix, without a scheme: `registry.example.com:5000/team`. */
  readonly location: string;
  readonly auth: RegistryAuth;
}

/** Returns the credentials in pull secrets that match the image. Unreadable secrets are skipped. Pure. */
export function pullCredentials(image: string, secrets: readonly Secret[]): readonly RegistryAuth[] {
  return matchingCredentials(image, secrets.flatMap(entriesOf));
}

/**
 * Returns the credentials that match the image, the most specific location first. A path matches as a plain prefix, so
 * `registry/team` also matches `registry/team-a/app`, as in Kubernetes. Pure.
 */
export function matchingCredentials(image: string, entries: readonly RegistryEntry[]): readonly RegistryAuth[] {
  const { registry, repository } = parseImageRef(image);
  const hub = repository.includes("/") ? repository : `library/${repository}`;
  const full = registry === "" ? `docker.io/${hub}` : `${registry}/${repository}`;
  return entries
    .filter(({ location }) => isMatch(location, full))
    .sort((a, b) => b.location.length - a.location.length)
    .map(({ auth }) => auth);
}

/**
 * Parses a `config.json` (entries below `auths`) or a legacy `.dockercfg` (entries at the top). Undefined if the text is
 * not a configuration. Pure.
 */
export function parseDockerConfig(text: string, format: "config.json" | ".dockercfg"): RegistryEntry[] | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(parsed)) return undefined;
  const entries = format === "config.json" ? (parsed["auths"] ?? {}) : parsed;
  if (!isRecord(entries)) return undefined;
  return Object.entries(entries).flatMap(([location, value]) =>
    isRecord(value) ? [{ location: bareLocation(location), auth: authOf(value) }] : [],
  );
}

function entriesOf({ type, data }: Secret): readonly RegistryEntry[] {
  const [format, encoded] =
    type === OLD
      ? ([".dockercfg", data?.[".dockercfg"]] as const)
      : (["config.json", type === MODERN ? data?.[".dockerconfigjson"] : undefined] as const);
  if (encoded === undefined) return [];
  return parseDockerConfig(Buffer.from(encoded, "base64").toString("utf8"), format) ?? [];
}

/** `https://index.docker.io/v1/` is the common name of Docker's own registry. */
function bareLocation(text: string): string {
  const bare = text.replace(/^https?:\/\//, "").replace(/\/+$/, "");
  return bare
    .replace(/^(index\.|registry-1\.)?docker\.io(\/v[12](?=\/|$))?/, "docker.io")
    .replace(/^([^/]+)\/v[12](?=\/|$)/, "$1");
}

function authOf(value: Record<string, unknown>): RegistryAuth {
  const word = (name: string): string => (typeof value[name] === "string" ? value[name] : "");
  const decoded = Buffer.from(word("auth"), "base64").toString("utf8");
  // As in Kubernetes, `auth` wins over the fields beside it.
  const [, username = word("username"), password = word("password")] = /^([^:]*):(.*)$/s.exec(decoded) ?? [];
  const identityToken = word("identitytoken");
  const registryToken = word("registrytoken");
  return {
    ...(username !== "" && { username }),
    ...(password !== "" && { password }),
    ...(identityToken !== "" && { identityToken }),
    ...(registryToken !== "" && { registryToken }),
  };
}

/** The host may have `*` within one of its labels; the path must be a prefix of the image's. */
function isMatch(location: string, image: string): boolean {
  const [host, path] = split(location);
  const [imageHost, imagePath] = split(image);
  const labels = host.split(".");
  const imageLabels = imageHost.split(".");
  const isHost =
    labels.length === imageLabels.length && labels.every((label, at) => matches(label, imageLabels[at] ?? ""));
  return isHost && imagePath.startsWith(path);
}

function split(location: string): [host: string, path: string] {
  const slash = location.indexOf("/");
  return slash === -1 ? [location, ""] : [location.slice(0, slash), location.slice(slash)];
}

function matches(pattern: string, word: string): boolean {
  if (!pattern.includes("*")) return pattern === word;
  const [before = "", after = ""] = pattern.split("*");
  return word.length >= before.length + after.length && word.startsWith(before) && word.endsWith(after);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
