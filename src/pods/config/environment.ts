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

/** Upper limit of a container's environment, names and values together: more than any kernel takes. */
const MOST_ENVIRONMENT_BYTES = 4 * 1024 * 1024;

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
 * before it. Throws a `ConfigError` for what the spec cannot get, and as soon as it is more than 4 MiB.
 */
export function environment(
  pod: Pod,
  container: Container,
  facts: EnvironmentFacts,
): readonly { name: string; value: string }[] {
  const resolved = new Variables();
  const context: Resolving = { pod, container, facts, resolved, texts: new Map() };
  for (const source of container.envFrom ?? []) {
    for (const [key, bytes] of wholeObject(source, context)) {
      resolved.set(`${source.prefix ?? ""}${key}`, text(bytes, context));
    }
  }
  for (const variable of container.env ?? []) {
    const value = valueOf(variable, context);
    if (value !== undefined) resolved.set(variable.name, value);
  }
  for (const [name, value] of facts.services ?? []) {
    if (resolved.get(name) === undefined) resolved.set(name, value);
  }
  return resolved.list();
}

/** Variables within the limit. One that is replaced still counts: a thousand of one name are work, too. */
class Variables {
  private readonly values = new Map<string, string>();
  private bytes = 0;

  /** Bytes that are left for the next variable. */
  get left(): number {
    return MOST_ENVIRONMENT_BYTES - this.bytes;
  }

  get(name: string): string | undefined {
    return this.values.get(name);
  }

  set(name: string, value: string): void {
    this.bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    if (this.left < 0) throw tooLong();
    this.values.set(name, value);
  }

  list(): readonly { name: string; value: string }[] {
    return [...this.values].map(([name, value]) => ({ name, value }));
  }
}

function tooLong(): ConfigError {
  return new ConfigError(`environment takes more than ${MOST_ENVIRONMENT_BYTES} bytes`);
}

interface Resolving {
  readonly pod: Pod;
  readonly container: Container;
  readonly facts: EnvironmentFacts;
  readonly resolved: Variables;
  /** Values of ConfigMaps and Secrets, each decoded once. */
  readonly texts: Map<Uint8Array, string>;
}

function valueOf(variable: EnvVar, context: Resolving): string | undefined {
  const { pod, container, facts } = context;
  const from = variable.valueFrom;
  if (from === undefined) return expanded(variable.value ?? "", context);
  if (from.fieldRef !== undefined) return fieldValue(from.fieldRef.fieldPath, pod, facts);
  if (from.resourceFieldRef !== undefined) {
    return resourceFieldValue(pod, from.resourceFieldRef, { container, allocatable: facts.allocatable });
  }
  if (from.configMapKeyRef !== undefined) return keyValue("ConfigMap", from.configMapKeyRef, context);
  if (from.secretKeyRef !== undefined) return keyValue("Secret", from.secretKeyRef, context);
  if (from.fileKeyRef !== undefined) return fileValue(from.fileKeyRef, facts);
  throw new ConfigError(`env ${variable.name}: this kind of valueFrom is not supported`);
}

function expanded(value: string, { resolved, facts }: Resolving): string {
  try {
    return expandEnv(value, (name) => resolved.get(name) ?? facts.services?.get(name), resolved.left);
  } catch (error) {
    throw error instanceof ConfigError ? tooLong() : error;
  }
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
function wholeObject(source: EnvFromSource, context: Resolving): ObjectEntries {
  const kind: Source = source.configMapRef !== undefined ? "ConfigMap" : "Secret";
  const ref = source.configMapRef ?? source.secretRef;
  return (ref && lookUp(kind, ref, context)) ?? new Map<string, Uint8Array>();
}

function keyValue(
  kind: Source,
  ref: { name?: string; key: string; optional?: boolean },
  context: Resolving,
): string | undefined {
  const entries = lookUp(kind, ref, context);
  const bytes = entries?.get(ref.key);
  if (bytes !== undefined) return text(bytes, context);
  if (ref.optional === true) return undefined;
  throw new ConfigError(`couldn't find key ${ref.key} in ${kind} ${context.pod.metadata.namespace}/${ref.name}`);
}

function lookUp(
  kind: Source,
  ref: { name?: string; optional?: boolean },
  { pod, facts }: Resolving,
): ObjectEntries | undefined {
  const key = objectKey({ kind, namespace: pod.metadata.namespace ?? "", name: ref.name ?? "" });
  const entries = facts.objects?.get(key);
  if (entries === undefined && ref.optional !== true) {
    throw new ConfigError(`${kind.toLowerCase()} "${ref.name}" not found`);
  }
  return entries;
}

function text(bytes: Uint8Array, { texts }: Resolving): string {
  const known = texts.get(bytes);
  if (known !== undefined) return known;
  const decoded = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  texts.set(bytes, decoded);
  return decoded;
}
