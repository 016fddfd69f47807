import type { Abortable } from "../lib/abort.ts";
import type { ObjectSource } from "../model/object-source.ts";
import type { VolumeOfPod } from "./kind.ts";

/** The namespace of a volume's Secret: that of its pod, unless a PersistentVolume names another. Pure. */
export function secretNamespace(
  ref: { readonly name?: string; readonly namespace?: string } | undefined,
  { pod, persistent }: Pick<VolumeOfPod, "pod" | "persistent">,
): string {
  const named = persistent === undefined ? "" : (ref?.namespace ?? "");
  return named || (pod.metadata.namespace ?? "");
}

/** The values of a Secret by key: not all are texts. Rejects, in the words of Kubernetes, if it cannot be read. */
export async function secretValues(
  { namespace, name }: { readonly namespace: string; readonly name: string },
  objects: ObjectSource,
  options: Abortable,
): Promise<ReadonlyMap<string, Buffer>> {
  const secret = await objects.get({ kind: "Secret", namespace, name }, options);
  if (secret === undefined)
    throw new Error(`couldn't get secret ${namespace}/${name} error: secret "${name}" not found`);
  const data = Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64")] as const);
  // A manifest beside the pod may have texts.
  const texts = Object.entries(secret.stringData ?? {}).map(([key, text]) => [key, Buffer.from(text)] as const);
  return new Map([...data, ...texts]);
}
