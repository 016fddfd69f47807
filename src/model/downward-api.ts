import { ownValue } from "../lib/own-value.ts";
import { ConfigError } from "./config-error.ts";
import type { Pod } from "./generated/types.ts";

/** Values of a pod's fields that are not in its object: addresses that only the node knows. */
export interface FieldFacts {
  readonly podIps: readonly string[];
  readonly hostIps: readonly string[];
}

/** The value of a downward API field, for variables and for volumes; unknown ones are a configuration error. */
export function fieldValue(path: string, pod: Pod, facts: FieldFacts): string {
  const keyed = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path);
  if (keyed !== null)
    return ownValue(pod.metadata[keyed[1] === "labels" ? "labels" : "annotations"], keyed[2] ?? "") ?? "";
  switch (path) {
    case "metadata.name":
      return pod.metadata.name ?? "";
    case "metadata.namespace":
      return pod.metadata.namespace ?? "";
    case "metadata.uid":
      return pod.metadata.uid ?? "";
    case "metadata.labels":
      return mapLines(pod.metadata.labels);
    case "metadata.annotations":
      return mapLines(pod.metadata.annotations);
    case "spec.nodeName":
      return pod.spec.nodeName ?? "";
    case "spec.serviceAccountName":
      return pod.spec.serviceAccountName ?? "";
    case "status.hostIP":
      return facts.hostIps[0] ?? "";
    case "status.hostIPs":
      return facts.hostIps.join(",");
    case "status.podIP":
      return facts.podIps[0] ?? "";
    case "status.podIPs":
      return facts.podIps.join(",");
    default:
      throw new ConfigError(`fieldRef "${path}" is not one of the fields that a container may read`);
  }
}

function mapLines(map: Readonly<Record<string, string>> | undefined): string {
  const entries = Object.entries(map ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join("\n");
}
