import { ConfigurationError } from "../configuration-error.ts";
import { API_VERSION } from "../document.ts";

/** Where a dynamic configuration came from, and which of its versions this is. */
export interface ConfigSource {
  /** `file`: by `kubelet config apply` on this machine. */
  readonly kind: "file" | "configMap";
  readonly namespace: string;
  /** The ConfigMap's name, or the path of the file. */
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** The key of the data that is the configuration. */
  readonly key: string;
  /** SHA-256 of the checkpoint, in hex; unknown for one that another kubelet wrote. */
  readonly digest?: string;
  /** Kept in the one file that v1.8 to v1.10 wrote. */
  readonly isOldLayout?: boolean;
}

const KIND = "SerializedNodeConfigSource";
/** Of v1.8 to v1.10, which had no choice of key. */
const OLD_KEY = "kubelet";

/** Which version of which source; two with one id are the same. */
export function sourceId({ uid, resourceVersion, key }: Pick<ConfigSource, "uid" | "resourceVersion" | "key">): string {
  return `${uid}/${resourceVersion}/${key}`;
}

/** As upstream's metrics call it: the path of the ConfigMap, or `local`. */
export function sourceName(source: ConfigSource | undefined): string {
  if (source === undefined) return "local";
  const { kind, namespace, name } = source;
  return kind === "file" ? name : `/api/v1/namespaces/${namespace}/configmaps/${name}`;
}

/** One line of JSON, which is YAML too: cut anywhere it is neither. Empty for the local configuration. */
export function encodePointer(source: ConfigSource | undefined): string {
  if (source === undefined) return "";
  const { kind, namespace, name, uid, resourceVersion, key, digest } = source;
  const ref = { namespace, name, uid, resourceVersion, kubeletConfigKey: key };
  const content = { apiVersion: API_VERSION, kind: KIND, source: { [kind]: ref }, ...(digest && { digest }) };
  return `${JSON.stringify(content)}\n`;
}

/** Reads a pointer of either layout; throws when it is damaged. */
export function decodePointer(value: unknown): ConfigSource {
  const pointer = record(value);
  if ("configMapRef" in pointer) {
    const { namespace, name, uid } = record(pointer["configMapRef"]);
    return {
      kind: "configMap",
      namespace: text(namespace),
      name: text(name),
      uid: baseName(uid),
      resourceVersion: "",
      key: OLD_KEY,
      isOldLayout: true,
    };
  }
  if (pointer["kind"] !== KIND) throw damaged(`its kind must be ${KIND}`);
  const source = record(pointer["source"]);
  const kind = "file" in source ? "file" : "configMap";
  const { namespace, name, uid, resourceVersion, kubeletConfigKey } = record(source[kind]);
  const { digest } = pointer;
  return {
    kind,
    namespace: text(namespace),
    name: text(name),
    uid: baseName(uid),
    resourceVersion: baseName(resourceVersion),
    key: baseName(kubeletConfigKey),
    ...(digest === undefined ? {} : { digest: text(digest) }),
  };
}

/** True for what may be a file's name: a pointer must not lead out of the store. */
export function isBaseName(name: string): boolean {
  return /^[^/\0]{1,255}$/.test(name) && name !== "." && name !== "..";
}

function baseName(value: unknown): string {
  const name = text(value);
  if (!isBaseName(name)) throw damaged(`"${name}" is not a plain file name`);
  return name;
}

function text(value: unknown): string {
  if (typeof value !== "string") throw damaged("a name is missing");
  return value;
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw damaged("an object is missing");
  return value as Readonly<Record<string, unknown>>; // reason: checked above
}

function damaged(what: string): ConfigurationError {
  return new ConfigurationError("Damaged", what);
}
