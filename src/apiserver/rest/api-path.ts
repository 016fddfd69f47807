/** What a path of the API names. */
export interface ApiPath {
  readonly group: string;
  readonly version: string;
  /** Empty for cluster-scoped kinds, and for all namespaces. */
  readonly namespace: string;
  readonly plural: string;
  /** Empty for a collection. */
  readonly name: string;
  readonly subresource: string;
}

/** Sub-resources of a namespace, which look like resources in it. */
const OF_NAMESPACE = ["status", "finalize"];

/** Reads `/api/v1/namespaces/default/pods/web/log`; undefined if it is no path of a resource. */
export function readApiPath(path: string): ApiPath | undefined {
  const parts = path.split("/").filter((part) => part !== "");
  const [root, ...rest] = parts;
  if (root === "api") return readResource("", rest);
  if (root !== "apis") return undefined;
  const [group = "", ...below] = rest;
  return group === "" ? undefined : readResource(group, below);
}

function readResource(group: string, parts: readonly string[]): ApiPath | undefined {
  const [version = "", first = "", ...rest] = parts;
  if (version === "" || first === "") return undefined;
  const isInNamespace = first === "namespaces" && rest.length > 1 && !OF_NAMESPACE.includes(rest[1] ?? "");
  if (!isInNamespace) return withName({ group, version, namespace: "", plural: first }, rest);
  const [namespace = "", plural = "", ...below] = rest;
  return withName({ group, version, namespace, plural }, below);
}

function withName(
  place: Omit<ApiPath, "name" | "subresource">,
  [name = "", subresource = "", ...rest]: readonly string[],
): ApiPath | undefined {
  return rest.length > 0 ? undefined : { ...place, name, subresource };
}
