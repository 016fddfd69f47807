import { isQualifiedName } from "../model/names.ts";

/** The version of the device plugin API. */
export const API_VERSION = "v1beta1";
/** Bytes of the longest socket path of the kernel, and more than any name takes. */
const MOST_BYTES = 1024;

/** Why a name is not that of an extended resource; undefined if it is. Pure. */
export function resourceNameProblem(name: string): string | undefined {
  const isExtended =
    name.length <= MOST_BYTES &&
    name.includes("/") &&
    !name.includes("kubernetes.io/") &&
    !name.startsWith("requests.") &&
    // The name in a quota has this prefix.
    isQualifiedName(`requests.${name}`);
  return isExtended ? undefined : `the ResourceName ${quoted(name)} is invalid`;
}

/** Why these versions of a plugin's API do not do; undefined if one does. Pure. */
export function versionProblem(versions: readonly string[]): string | undefined {
  if (versions.includes(API_VERSION)) return undefined;
  const asked = versions.map(quoted).join(" ");
  return `requested API version ${asked} is not supported by kubelet. Supported version is ["${API_VERSION}"]`;
}

/** Why this path does not lead to a socket below the directory of plugins when it is joined to it; undefined if it does. Pure. */
export function endpointProblem(endpoint: string): string | undefined {
  const parts = endpoint.split("/").filter((part) => part !== "" && part !== ".");
  const isBelow =
    endpoint.length <= MOST_BYTES &&
    !endpoint.includes("\0") &&
    !endpoint.startsWith("/") &&
    parts.length > 0 &&
    !parts.includes("..");
  return isBelow ? undefined : `the endpoint ${quoted(endpoint)} is not a socket in the directory of device plugins`;
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, MOST_BYTES));
}
