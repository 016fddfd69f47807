import { bareLocation, type RegistryEntry } from "../../model/docker-config.ts";
import { parseDuration } from "../../model/duration.ts";

/** What a plugin is asked. */
export interface ProviderRequest {
  readonly apiVersion: string;
  /** The repository, without tag and digest. */
  readonly image: string;
  readonly serviceAccountToken?: string;
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
}

/** For which images a response is cached. */
export type CacheKeyType = "Image" | "Registry" | "Global";

/** What a plugin answered. */
export interface ProviderResponse {
  readonly cacheKeyType: CacheKeyType;
  /** Milliseconds; undefined if the default of the configuration applies, 0 if nothing is cached. */
  readonly cacheMs: number | undefined;
  readonly entries: readonly RegistryEntry[];
}

const KIND = "CredentialProviderResponse";
const CACHE_KEY_TYPES: readonly CacheKeyType[] = ["Image", "Registry", "Global"];
/** Registries in one response; more are a mistake. */
const MOST_ENTRIES = 10_000;

/** Returns the text for the standard input of a plugin. Pure. */
export function encodeRequest({ apiVersion, image, ...account }: ProviderRequest): string {
  const { serviceAccountToken = "", serviceAccountAnnotations = {} } = account;
  const hasAnnotations = Object.keys(serviceAccountAnnotations).length > 0;
  return `${JSON.stringify({
    kind: "CredentialProviderRequest",
    apiVersion,
    image,
    ...(serviceAccountToken !== "" && { serviceAccountToken }),
    ...(hasAnnotations && { serviceAccountAnnotations }),
  })}\n`;
}

/** Reads the standard output of a plugin. Throws errors that contain nothing of the text: it has secrets. Pure. */
export function decodeResponse(text: string, apiVersion: string): ProviderResponse {
  const response = parseObject(text);
  if (response["apiVersion"] !== apiVersion) throw new Error(`apiVersion of the response is not ${apiVersion}`);
  if (response["kind"] !== KIND) throw new Error(`kind of the response is not ${KIND}`);
  const cacheKeyType = CACHE_KEY_TYPES.find((type) => type === response["cacheKeyType"]);
  if (cacheKeyType === undefined) throw new Error(`cacheKeyType is none of ${CACHE_KEY_TYPES.join(", ")}`);
  const auth = Object.entries(objectOf(response["auth"] ?? {}, "auth"));
  if (auth.length > MOST_ENTRIES) throw new Error(`auth has more than ${MOST_ENTRIES} entries`);
  return {
    cacheKeyType,
    cacheMs: cacheMsOf(response["cacheDuration"] ?? undefined),
    entries: auth.map(([location, value]) => entryOf(location, objectOf(value, "an entry of auth"))),
  };
}

function entryOf(location: string, value: Record<string, unknown>): RegistryEntry {
  const word = (name: string): string => {
    const text = value[name] ?? "";
    if (typeof text !== "string") throw new Error(`${name} in auth is not a string`);
    return text;
  };
  const [username, password] = [word("username"), word("password")];
  const auth = { ...(username !== "" && { username }), ...(password !== "" && { password }) };
  return { location: bareLocation(location), auth };
}

function cacheMsOf(value: unknown): number | undefined {
  if (value === undefined) return undefined;
  try {
    return parseDuration(typeof value === "string" ? value : "");
  } catch {
    throw new Error("cacheDuration is not a duration");
  }
}

function parseObject(text: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error("the response is not JSON");
  }
  return objectOf(parsed, "the response");
}

function objectOf(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`${what} is not an object`);
  // Just checked.
  return value as Record<string, unknown>;
}
