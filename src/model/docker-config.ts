import type { Secret } from "./generated/types.ts";
import { parseImageRef } from "./image-ref.ts";

/** Credentials for one registry. */
export interface RegistryAuth {
  readonly username?: string;
  readonly password?: string;
  readonly identityToken?: string;
  readonly registryToken?: string;
}

const MODERN = "kubernetes.io/dockerconfigjson";
const OLD = "kubernetes.io/dockercfg";

/** The credentials in pull secrets that fit the image, the most exact place first. Unreadable ones are left out. Pure. */
export function pullCredentials(image: string, secrets: readonly Secret[]): readonly RegistryAuth[] {
  const { registry, repository } = parseImageRef(image);
  const hub = repository.includes("/") ? repository : `library/${repository}`;
  const full = registry === "" ? `docker.io/${hub}` : `${registry}/${repository}`;
  return secrets
    .flatMap(entriesOf)
    .filter(({ place }) => fits(place, full))
    .sort((a, b) => b.place.length - a.place.length)
    .map(({ auth }) => auth);
}

interface Entry {
  readonly place: string;
  readonly auth: RegistryAuth;
}

function entriesOf({ type, data }: Secret): Entry[] {
  const text = type === OLD ? data?.[".dockercfg"] : type === MODERN ? data?.[".dockerconfigjson"] : undefined;
  if (text === undefined) return [];
  try {
    const parsed: unknown = JSON.parse(Buffer.from(text, "base64").toString("utf8"));
    const places = type === OLD ? parsed : isRecord(parsed) ? parsed["auths"] : undefined;
    if (!isRecord(places)) return [];
    return Object.entries(places).flatMap(([place, value]) =>
      isRecord(value) ? [{ place: placeOf(place), auth: authOf(value) }] : [],
    );
  } catch {
    return [];
  }
}

/** `https://index.docker.io/v1/` is what everybody writes for Docker's own registry. */
function placeOf(text: string): string {
  const bare = text.replace(/^https?:\/\//, "").replace(/\/+$/, "");
  return bare.replace(/^(index\.|registry-1\.)?docker\.io(\/v[12])?/, "docker.io").replace(/\/v[12]$/, "");
}

function authOf(value: Record<string, unknown>): RegistryAuth {
  const word = (name: string): string => (typeof value[name] === "string" ? value[name] : "");
  const [, user = "", secret = ""] = /^([^:]*):(.*)$/s.exec(Buffer.from(word("auth"), "base64").toString("utf8")) ?? [];
  const [username, password] = [word("username") || user, word("password") || secret];
  const identityToken = word("identitytoken");
  const registryToken = word("registrytoken");
  return {
    ...(username !== "" && { username }),
    ...(password !== "" && { password }),
    ...(identityToken !== "" && { identityToken }),
    ...(registryToken !== "" && { registryToken }),
  };
}

/** A host may have `*` for one of its words; a path is a beginning of the image's. */
function fits(place: string, image: string): boolean {
  const [host = "", ...path] = place.split("/");
  const [imageHost = "", ...imagePath] = image.split("/");
  const words = host.split(".");
  const imageWords = imageHost.split(".");
  const isHost = words.length === imageWords.length && words.every((word, at) => matches(word, imageWords[at] ?? ""));
  return isHost && path.every((part, at) => part === imagePath[at]);
}

function matches(pattern: string, word: string): boolean {
  if (!pattern.includes("*")) return pattern === word;
  const [before = "", after = ""] = pattern.split("*");
  return word.length >= before.length + after.length && word.startsWith(before) && word.endsWith(after);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
