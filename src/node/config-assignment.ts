import { isBaseName } from "../config/index.ts";
import type { Node } from "../model/generated/types.ts";

/** Names the ConfigMap of this node's configuration: `NAMESPACE/NAME` or `NAMESPACE/NAME/KEY`. */
export const CONFIG_SOURCE_ANNOTATION = "kubelet-ts/config-source";

/** The default key; kubelets before v1.11 supported no other. */
const DEFAULT_KEY = "kubelet";
const FIELD = "spec.configSource of the Node";
const ANNOTATION = `the annotation ${CONFIG_SOURCE_ANNOTATION} of the Node`;

/** The configuration that the cluster assigns to this node, and where it does so. */
export type ConfigAssignment =
  | { readonly kind: "none" }
  | { readonly kind: "invalid"; readonly by: string; readonly why: string }
  | WantedConfigMap;

export interface WantedConfigMap {
  readonly kind: "configMap";
  readonly by: string;
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
  /** Only v1.8 to v1.10: the ConfigMap must have this UID. */
  readonly uid?: string;
}

/** Returns the assignment; the field of servers before 1.24 takes precedence over the annotation. Pure. */
export function configAssignment(node: Node): ConfigAssignment {
  const field: unknown = node.spec.configSource;
  if (field !== undefined && field !== null) return checked({ by: FIELD, ...fieldParts(field) });
  const annotation = node.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION];
  if (annotation === undefined) return { kind: "none" };
  const parts = annotation.trim().split("/");
  if (parts.length < 2 || parts.length > 3) {
    return { kind: "invalid", by: ANNOTATION, why: `"${annotation}" is not NAMESPACE/NAME or NAMESPACE/NAME/KEY` };
  }
  const [namespace, name, key = DEFAULT_KEY] = parts;
  return checked({ by: ANNOTATION, namespace, name, key });
}

interface Parts {
  readonly namespace?: unknown;
  readonly name?: unknown;
  readonly key?: unknown;
  readonly uid?: unknown;
}

/** v1.11 and later: `configMap`; v1.8 to v1.10: `configMapRef` with the UID and a fixed key. */
function fieldParts(field: unknown): Parts {
  const [now, old] = [member(field, "configMap"), member(field, "configMapRef")];
  if (now !== undefined) {
    return { namespace: member(now, "namespace"), name: member(now, "name"), key: member(now, "kubeletConfigKey") };
  }
  if (old === undefined) return {};
  const uid = member(old, "uid") ?? "";
  return { namespace: member(old, "namespace"), name: member(old, "name"), key: DEFAULT_KEY, uid };
}

function checked({ by, namespace, name, key, uid }: Parts & { readonly by: string }): ConfigAssignment {
  const wrong = (why: string): ConfigAssignment => ({ kind: "invalid", by, why });
  if (namespace === undefined && name === undefined) return wrong("it names no ConfigMap");
  if (!isObjectName(namespace)) return wrong(`"${String(namespace ?? "")}" is no namespace`);
  if (!isObjectName(name)) return wrong(`"${String(name ?? "")}" is no name of a ConfigMap`);
  if (typeof key !== "string" || !isBaseName(key)) return wrong(`"${String(key ?? "")}" is no key of a ConfigMap`);
  if (uid === undefined) return { kind: "configMap", by, namespace, name, key };
  if (typeof uid !== "string" || uid === "") return wrong("its configMapRef has no uid");
  return { kind: "configMap", by, namespace, name, key, uid };
}

function isObjectName(value: unknown): value is string {
  return typeof value === "string" && value.length <= 253 && /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(value);
}

function member(value: unknown, name: string): unknown {
  const found: unknown = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  return found === null ? undefined : found;
}
