import { ownValue } from "../lib/own-value.ts";
import type { Secret } from "./generated/types.ts";
import { credentialHash, type PullCredential, type RegistryAuth } from "./pull-credential.ts";
import { matchesRepository, repositoryOf } from "./registry-match.ts";

const MODERN = "kubernetes.io/dockerconfigjson";
const OLD = "kubernetes.io/dockercfg";

/** One entry of a Docker configuration: a registry, or a path in one, and its credentials. */
export interface RegistryEntry {
  /** Host, optional port and path prefix, without a scheme: `registry.example.com:5000/team`. */
  readonly location: string;
  readonly auth: RegistryAuth;
  /** Given to no registry; only a part of the credential's hash. */
  readonly email?: string;
}

/** Returns the credentials in pull secrets that match the image. Malformed secrets are skipped. Pure. */
export function pullCredentials(image: string, secrets: readonly Secret[]): readonly PullCredential[] {
  return matchingCredentials(
    image,
    secrets.flatMap((secret) => {
      const { uid = "", namespace = "", name = "" } = secret.metadata;
      const owner = { kind: "Secret", uid, namespace, name } as const;
      return (entriesOf(secret) ?? []).map((entry) => ({ ...entry, owner }));
    }),
  );
}

/**
 * Returns the credentials that match the image, as in Kubernetes in the reverse order of their locations, so that the
 * most specific one is first; those of one location in the order given. Pure.
 */
export function matchingCredentials(
  image: string,
  entries: readonly (RegistryEntry & Pick<PullCredential, "owner">)[],
): readonly PullCredential[] {
  const repository = repositoryOf(image);
  return entries
    .filter(({ location }) => matchesRepository(location, repository))
    .sort((a, b) => Buffer.compare(Buffer.from(b.location), Buffer.from(a.location)))
    .map(({ auth, email, owner }) => ({ auth, hash: credentialHash(auth, email), ...(owner && { owner }) }));
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
  const entries = format === "config.json" ? (fieldOf(parsed, "auths") ?? {}) : parsed;
  if (!isRecord(entries)) return undefined;
  return Object.entries(entries).flatMap(([location, value]) => (isRecord(value) ? [entryOf(location, value)] : []));
}

/** True for a pull secret whose content is not a Docker configuration. Pure. */
export function isMalformed(secret: Secret): boolean {
  return entriesOf(secret) === undefined;
}

/** Undefined if the secret is malformed; one of another type, or without content, has no entries. */
function entriesOf({ type, data }: Secret): readonly RegistryEntry[] | undefined {
  const [format, encoded = ""] =
    type === OLD
      ? ([".dockercfg", data?.[".dockercfg"]] as const)
      : (["config.json", type === MODERN ? data?.[".dockerconfigjson"] : undefined] as const);
  return encoded === "" ? [] : parseDockerConfig(Buffer.from(encoded, "base64").toString("utf8"), format);
}

function entryOf(location: string, value: Record<string, unknown>): RegistryEntry {
  const email = fieldOf(value, "email");
  const isGiven = typeof email === "string" && email !== "";
  return { location: bareLocation(location), auth: authOf(value), ...(isGiven && { email }) };
}

/**
 * Returns a location without scheme and API version; `https://index.docker.io/v1/` is the common name of Docker's own
 * registry. The slash behind a path stays: `registry/team/` does not match `registry/team-a/app`. Pure.
 */
export function bareLocation(text: string): string {
  return text
    .replace(/^https?:\/\//, "")
    .replace(/^(?:index\.|registry-1\.)docker\.io(?=\/|$)/, "docker.io")
    .replace(/^([^/]+)\/v[12](?=\/|$)/, "$1")
    .replace(/^([^/]+)\/+$/, "$1");
}

function authOf(value: Record<string, unknown>): RegistryAuth {
  const word = (name: string): string => {
    const text = fieldOf(value, name);
    return typeof text === "string" ? text : "";
  };
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

/** The value of a field, whose name may be written in any case, as in Kubernetes. */
function fieldOf(record: Record<string, unknown>, name: string): unknown {
  const known = Object.hasOwn(record, name) ? name : Object.keys(record).find((key) => key.toLowerCase() === name);
  return known === undefined ? undefined : ownValue(record, known);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
