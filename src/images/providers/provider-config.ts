import { messageOf } from "../../lib/errors.ts";
import { parseDuration } from "../../model/duration.ts";
import { isQualifiedName } from "../../model/names.ts";
import { type FieldProblem, shownValue } from "../../model/problem.ts";
import { ConfigFields } from "./config-fields.ts";

/** Which service account token a credential provider gets. */
export interface TokenAttributes {
  readonly audience: string;
  /** Whether credentials are cached for all pods of the service account, or for the token of one pod only. */
  readonly cacheType: "ServiceAccount" | "Token";
  /** True if the provider is left out for pods without a service account. */
  readonly isRequired: boolean;
  /** Without one of these on the service account the provider is left out. */
  readonly requiredAnnotations: readonly string[];
  readonly optionalAnnotations: readonly string[];
}

/** One credential provider plugin of a `CredentialProviderConfig`. */
export interface ProviderConfig {
  /** The file name of the executable in the bin directory. */
  readonly name: string;
  readonly matchImages: readonly string[];
  readonly defaultCacheMs: number;
  /** The version of the request and of the response. */
  readonly apiVersion: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly token?: TokenAttributes;
}

const GROUP = "kubelet.config.k8s.io";
const KIND = "CredentialProviderConfig";
const CONFIG_VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`, `${GROUP}/v1alpha1`];
const EXEC_VERSIONS = ["v1", "v1beta1", "v1alpha1"].map((version) => `credentialprovider.kubelet.k8s.io/${version}`);
const [NEWEST_CONFIG] = CONFIG_VERSIONS;
const [NEWEST_EXEC = ""] = EXEC_VERSIONS;
const CACHE_TYPES = ["ServiceAccount", "Token"] as const;

/** Reads a `CredentialProviderConfig`, with all its problems; one of several files may have no provider. Pure. */
export function decodeProviderConfig(
  value: unknown,
  { allowsTokens }: { readonly allowsTokens: boolean },
): { readonly providers: readonly ProviderConfig[]; readonly problems: readonly FieldProblem[] } {
  const problems: FieldProblem[] = [];
  const top = new ConfigFields(value, "", problems);
  if (!top.isObject) return { providers: [], problems };
  const version = top.text("apiVersion");
  if (!CONFIG_VERSIONS.includes(version)) top.problem("apiVersion", "is not supported", oneOf(CONFIG_VERSIONS));
  if (top.text("kind") !== KIND) top.problem("kind", "is not supported", oneOf([KIND]));
  top.knows(["apiVersion", "kind", "providers"]);
  const list = top.list("providers");
  const hasToken = version === NEWEST_CONFIG;
  const providers = list.map((one, at) =>
    decodeProvider(new ConfigFields(one, `providers[${at}]`, problems), { hasToken, allowsTokens }),
  );
  return { providers, problems };
}

/** Returns the problem of a name that two providers have, in one file or in several. Pure. */
export function duplicateNames(providers: readonly ProviderConfig[]): readonly FieldProblem[] {
  const names = providers.map(({ name }) => name);
  const twice = new Set(names.filter((name, at) => names.indexOf(name) !== at));
  return [...twice].map((name) => ({
    path: "providers[].name",
    value: shownValue(name),
    message: "is the name of two providers",
    fix: "configure each provider once, in one file",
  }));
}

function decodeProvider(
  fields: ConfigFields,
  { hasToken, allowsTokens }: { readonly hasToken: boolean; readonly allowsTokens: boolean },
): ProviderConfig {
  const known = ["name", "matchImages", "defaultCacheDuration", "apiVersion", "args", "env"];
  fields.knows(hasToken ? [...known, "tokenAttributes"] : known);
  const apiVersion = fields.text("apiVersion");
  if (!EXEC_VERSIONS.includes(apiVersion)) fields.problem("apiVersion", "is not supported", oneOf(EXEC_VERSIONS));
  const matchImages = fields.texts("matchImages");
  if (matchImages.length === 0) fields.problem("matchImages", "must not be empty", "list at least one image pattern");
  matchImages.forEach((pattern, at) => {
    if (!isPattern(pattern)) fields.problem(`matchImages[${at}]`, "is not an image pattern", PATTERN_FIX);
  });
  const token = hasToken ? decodeToken(fields, { apiVersion, allowsTokens }) : undefined;
  return {
    name: nameOf(fields),
    matchImages,
    defaultCacheMs: cacheDurationOf(fields),
    apiVersion,
    args: fields.texts("args"),
    env: envOf(fields),
    ...(token && { token }),
  };
}

const PATTERN_FIX = "use a host with optional port and path, such as *.example.com:5000/team";

function nameOf(fields: ConfigFields): string {
  const name = fields.text("name");
  const isName = name !== "" && name !== "." && name !== ".." && !/[/ \0]/.test(name);
  if (!isName) fields.problem("name", "is not a file name", "use the name of an executable in the bin directory");
  return name;
}

function cacheDurationOf(fields: ConfigFields): number {
  const fix = 'set a duration such as "10m", or "0s" to cache nothing';
  if (!fields.has("defaultCacheDuration")) {
    fields.problem("defaultCacheDuration", "is required", fix);
    return 0;
  }
  try {
    const ms = parseDuration(fields.text("defaultCacheDuration"));
    if (ms < 0) fields.problem("defaultCacheDuration", "must not be negative", fix);
    return ms;
  } catch (error) {
    fields.problem("defaultCacheDuration", messageOf(error), fix);
    return 0;
  }
}

/** Values are never part of a problem: they may be secrets. */
function envOf(fields: ConfigFields): Readonly<Record<string, string>> {
  const entries = fields.objects("env").map((one): [string, string] => {
    one.knows(["name", "value"]);
    const name = one.text("name");
    if (name === "" || /[=\0]/.test(name)) one.problem("name", "is not a variable name", "use a name without =");
    return [name, one.text("value")];
  });
  return Object.fromEntries(entries);
}

function decodeToken(
  provider: ConfigFields,
  { apiVersion, allowsTokens }: { readonly apiVersion: string; readonly allowsTokens: boolean },
): TokenAttributes | undefined {
  const fields = provider.object("tokenAttributes");
  if (fields === undefined) return undefined;
  const gate = "KubeletServiceAccountTokenForCredentialProviders";
  if (!allowsTokens) fields.problem("", "is not allowed", `turn on the feature gate ${gate}`);
  if (apiVersion !== NEWEST_EXEC) fields.problem("", "is not allowed", `set apiVersion to ${NEWEST_EXEC}`);
  const keys = ["requiredServiceAccountAnnotationKeys", "optionalServiceAccountAnnotationKeys"] as const;
  fields.knows(["serviceAccountTokenAudience", "cacheType", "requireServiceAccount", ...keys]);
  const audience = fields.text("serviceAccountTokenAudience");
  if (audience === "") fields.problem("serviceAccountTokenAudience", "is required", "set the audience of the registry");
  const isRequired = fields.flag("requireServiceAccount");
  if (isRequired === undefined) fields.problem("requireServiceAccount", "is required", "set true or false");
  const [required, optional] = [annotationKeys(fields, keys[0]), annotationKeys(fields, keys[1])];
  if (isRequired === false && required.length > 0) {
    fields.problem(keys[0], "is not allowed", "set requireServiceAccount to true");
  }
  const both = required.find((key) => optional.includes(key));
  if (both !== undefined) fields.problem(keys[1], `has ${shownValue(both)}, which is required`, "list each key once");
  const cacheType = CACHE_TYPES.find((type) => type === fields.text("cacheType"));
  if (cacheType === undefined) fields.problem("cacheType", "is not supported", oneOf(CACHE_TYPES));
  return {
    audience,
    cacheType: cacheType ?? "Token",
    isRequired: isRequired ?? true,
    requiredAnnotations: required,
    optionalAnnotations: optional,
  };
}

function annotationKeys(fields: ConfigFields, name: string): readonly string[] {
  const keys = fields.texts(name);
  keys.forEach((key, at) => {
    const place = `${name}[${at}]`;
    if (!isQualifiedName(key.toLowerCase()))
      fields.problem(place, "is not an annotation key", "use name or domain/name");
    if (keys.indexOf(key) !== at) fields.problem(place, "is there twice", "list each key once");
  });
  return keys;
}

/** A host, with an optional port and path; what Kubernetes' parser of URLs takes. */
function isPattern(pattern: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\x00-\x20\x7f<>"{}|\\^`]/.test(pattern)) return false;
  const [authority = ""] = pattern.split("/", 1);
  return /^(?:\[[^\]]*\]|[^:[\]]*)(?::\d*)?$/.test(authority);
}

function oneOf(words: readonly string[]): string {
  return words.length === 1 ? `use ${words[0]}` : `use one of ${words.join(", ")}`;
}
