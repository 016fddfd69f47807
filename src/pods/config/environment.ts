import { messageOf } from "../../lib/errors.ts";
import { ConfigError } from "../../model/config-error.ts";
import { type FieldFacts, fieldValue } from "../../model/downward-api.ts";
import { expandEnv } from "../../model/env-expand.ts";
import { type EnvFiles, envFileKey, envFileValue } from "../../model/env-file.ts";
import type { EnvObjects } from "../../model/env-objects.ts";
import type { Container, EnvFromSource, EnvVar, FileKeySelector, Pod } from "../../model/generated/types.ts";
import type { ObjectEntries } from "../../model/object-data.ts";
import { objectKey } from "../../model/object-source.ts";
import { resourceFieldValue } from "../../model/resource-field.ts";

/** What a container's environment is made from. */
export interface EnvironmentFacts extends FieldFacts {
  /** What a missing limit stands for: the node's allocatable resources. */
  readonly allocatable: Readonly<Record<string, string>>;
  /** The ConfigMaps and Secrets that `envReferences` names, as far as they exist. */
  readonly objects?: EnvObjects;
  /** The files that `envFileReferences` names, as far as they exist. */
  readonly files?: EnvFiles;
  /** Variables of services: seen by `$(VAR)` last, added where nothing else has their name. */
  readonly services?: ReadonlyMap<string, string>;
}

/**
 * Returns the variables of a container in order: `envFrom` first, a later one of the same name wins, `$(VAR)` sees those
 * before it.
 */
export function environment(
  pod: Pod,
  container: Container,
  facts: EnvironmentFacts,
): readonly { name: string; value: string }[] {
  const resolved = new Map<string, string>();
  for (const source of container.envFrom ?? []) {
    for (const [key, value] of wholeObject(source, pod, facts)) resolved.set(`${source.prefix ?? ""}${key}`, value);
  }
  for (const variable of container.env ?? []) {
    const value = valueOf(variable, { pod, container, facts, resolved });
    if (value !== undefined) resolved.set(variable.name, value);
  }
  for (const [name, value] of facts.services ?? []) if (!resolved.has(name)) resolved.set(name, value);
  return [...resolved].map(([name, value]) => ({ name, value }));
}

interface Resolving {
  readonly pod: Pod;
  readonly container: Container;
  readonly facts: EnvironmentFacts;
  readonly resolved: ReadonlyMap<string, string>;
}

function valueOf(variable: EnvVar, context: Resolving): string | undefined {
  const { pod, container, facts } = context;
  const from = variable.valueFrom;
  if (from === undefined)
    return expandEnv(variable.value ?? "", (name) => context.resolved.get(name) ?? facts.services?.get(name));
  if (from.fieldRef !== undefined) return fieldValue(from.fieldRef.fieldPath, pod, facts);
  if (from.resourceFieldRef !== undefined) {
    return resourceFieldValue(pod, from.resourceFieldRef, { container, allocatable: facts.allocatable });
  }
  if (from.configMapKeyRef !== undefined) return keyValue("ConfigMap", from.configMapKeyRef, context);
  if (from.secretKeyRef !== undefined) return keyValue("Secret", from.secretKeyRef, context);
  if (from.fileKeyRef !== undefined) return fileValue(from.fileKeyRef, facts);
  throw new ConfigError(`env ${variable.name}: this kind of valueFrom is not supported`);
}

/** Returns one key of a file in a volume; an empty value counts as missing. */
function fileValue(ref: FileKeySelector, { files }: EnvironmentFacts): string | undefined {
  const content = files?.get(envFileKey(ref));
  const where = `file ${JSON.stringify(ref.path)} of volume "${ref.volumeName}"`;
  let value: string | undefined;
  try {
    value = content === undefined ? undefined : envFileValue(content, ref.key);
  } catch (error) {
    throw new ConfigError(`${messageOf(error)} (${where})`);
  }
  if (value !== undefined && value !== "") return value;
  if (ref.optional === true) return undefined;
  throw new ConfigError(content === undefined ? `${where} not found` : `couldn't find key ${ref.key} in ${where}`);
}

type Source = "ConfigMap" | "Secret";

/** Returns all keys of an object; none if it is missing and optional. */
function wholeObject(source: EnvFromSource, pod: Pod, facts: EnvironmentFacts): [string, string][] {
  const kind: Source = source.configMapRef !== undefined ? "ConfigMap" : "Secret";
  const ref = source.configMapRef ?? source.secretRef;
  const entries = ref === undefined ? new Map<string, Uint8Array>() : lookUp(kind, ref, { pod, facts });
  return [...(entries ?? [])].map(([key, bytes]) => [key, text(bytes)]);
}

function keyValue(
  kind: Source,
  ref: { name?: string; key: string; optional?: boolean },
  context: Resolving,
): string | undefined {
  const entries = lookUp(kind, ref, context);
  const bytes = entries?.get(ref.key);
  if (bytes !== undefined) return text(bytes);
  if (ref.optional === true) return undefined;
  throw new ConfigError(`couldn't find key ${ref.key} in ${kind} ${context.pod.metadata.namespace}/${ref.name}`);
}

function lookUp(
  kind: Source,
  ref: { name?: string; optional?: boolean },
  { pod, facts }: Pick<Resolving, "pod" | "facts">,
): ObjectEntries | undefined {
  const key = objectKey({ kind, namespace: pod.metadata.namespace ?? "", name: ref.name ?? "" });
  const entries = facts.objects?.get(key);
  if (entries === undefined && ref.optional !== true) {
    throw new ConfigError(`${kind.toLowerCase()} "${ref.name}" not found`);
  }
  return entries;
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("utf8");
}
