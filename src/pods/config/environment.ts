import { expandEnv } from "../../model/env-expand.ts";
import type { Container, EnvVar, Pod } from "../../model/generated/types.ts";
import { ConfigError } from "./config-error.ts";
import { resourceFieldValue } from "./resource-field.ts";

/** What a container's environment is made from. */
export interface EnvironmentFacts {
  readonly podIps: readonly string[];
  readonly hostIps: readonly string[];
  /** What a missing limit stands for: the node's allocatable resources. */
  readonly allocatable: Readonly<Record<string, string>>;
}

/**
 * The variables of a container in their order: a later one of the same name wins, `$(VAR)` sees those before it (8.6).
 */
export function environment(
  pod: Pod,
  container: Container,
  facts: EnvironmentFacts,
): readonly { name: string; value: string }[] {
  const resolved = new Map<string, string>();
  for (const variable of container.env ?? []) {
    const value = valueOf(variable, { pod, container, facts, resolved });
    if (value !== undefined) resolved.set(variable.name, value);
  }
  return [...resolved].map(([name, value]) => ({ name, value }));
}

interface Resolving {
  readonly pod: Pod;
  readonly container: Container;
  readonly facts: EnvironmentFacts;
  readonly resolved: ReadonlyMap<string, string>;
}

function valueOf(variable: EnvVar, context: Resolving): string | undefined {
  const from = variable.valueFrom;
  if (from === undefined) return expandEnv(variable.value ?? "", (name) => context.resolved.get(name));
  if (from.fieldRef !== undefined) return fieldValue(from.fieldRef.fieldPath, context.pod, context.facts);
  if (from.resourceFieldRef !== undefined) {
    return resourceFieldValue(context.pod, from.resourceFieldRef, {
      container: context.container,
      allocatable: context.facts.allocatable,
    });
  }
  throw new ConfigError(`env ${variable.name}: this kind of valueFrom is not supported yet`);
}

/** The value of a downward API field; unknown ones are a configuration error. */
export function fieldValue(path: string, pod: Pod, facts: EnvironmentFacts): string {
  const keyed = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path);
  if (keyed !== null) return pod.metadata[keyed[1] === "labels" ? "labels" : "annotations"]?.[keyed[2] ?? ""] ?? "";
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
