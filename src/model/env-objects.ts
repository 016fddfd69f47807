import type { Abortable } from "../lib/abort.ts";
import type { Container } from "./generated/types.ts";
import { configMapEntries, type ObjectEntries, secretEntries } from "./object-data.ts";
import { type ObjectRef, type ObjectSource, objectKey } from "./object-source.ts";

/**
 * The content of the objects that variables come from, by `objectKey`; an object that does not exist is missing. Of a
 * ConfigMap only `data` counts: `binaryData` is never a variable, as in Kubernetes.
 */
export type EnvObjects = ReadonlyMap<string, ObjectEntries>;

type EnvRef = ObjectRef<"ConfigMap" | "Secret">;

/** Returns the objects that a container's variables come from, each once. */
export function envReferences(container: Container, namespace: string): readonly EnvRef[] {
  const found = new Map<string, EnvRef>();
  const add = (kind: EnvRef["kind"], name: string | undefined): void => {
    const ref = { kind, namespace, name: name ?? "" };
    found.set(objectKey(ref), ref);
  };
  for (const { configMapRef, secretRef } of container.envFrom ?? []) {
    if (configMapRef !== undefined) add("ConfigMap", configMapRef.name);
    if (secretRef !== undefined) add("Secret", secretRef.name);
  }
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.configMapKeyRef !== undefined) add("ConfigMap", valueFrom.configMapKeyRef.name);
    if (valueFrom?.secretKeyRef !== undefined) add("Secret", valueFrom.secretKeyRef.name);
  }
  return [...found.values()];
}

/** Reads the objects that `envReferences` names; makes no call for a container without references. */
export async function readEnvObjects(
  source: ObjectSource,
  refs: readonly EnvRef[],
  options: Abortable,
): Promise<EnvObjects> {
  const entries = await Promise.all(
    refs.map(async (ref): Promise<readonly (readonly [string, ObjectEntries])[]> => {
      const content = await readVariables(source, ref, options);
      return content === undefined ? [] : [[objectKey(ref), content]];
    }),
  );
  return new Map(entries.flat());
}

async function readVariables(
  source: ObjectSource,
  ref: EnvRef,
  options: Abortable,
): Promise<ObjectEntries | undefined> {
  const { kind, namespace, name } = ref;
  if (kind === "Secret") return readEntries(source, ref, options);
  const found = await source.get({ kind, namespace, name }, options);
  return found && configMapEntries({ ...found, binaryData: {} });
}

/** Returns the content of one ConfigMap or Secret; undefined if it does not exist. */
export async function readEntries(
  source: ObjectSource,
  { kind, namespace, name }: EnvRef,
  options: Abortable,
): Promise<ObjectEntries | undefined> {
  if (kind === "ConfigMap") {
    const found = await source.get({ kind, namespace, name }, options);
    return found && configMapEntries(found);
  }
  const found = await source.get({ kind, namespace, name }, options);
  return found && secretEntries(found);
}
